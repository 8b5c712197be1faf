#include "base/look_alikes.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/utf8.h"

namespace caisson {
namespace {

/// `none`: the letters of this kind have no others that would show their script.
enum class Script { none, greek, cyrillic, armenian, hebrew, arabic, kana };

struct LikeRange {
  char32_t first, last;
};

template <std::size_t N>
bool holds(const LikeRange (&ranges)[N], char32_t code) {
  const auto* range = std::lower_bound(std::begin(ranges), std::end(ranges), code,
                                       [](const LikeRange& one, char32_t wanted) { return one.last < wanted; });
  return range != std::end(ranges) && code >= range->first;
}

constexpr LikeRange kCombining[] = {
    {0x300, 0x36F},                                        // combining marks: e and an acute accent look like é
    {0x483, 0x489},                                        // Cyrillic ones
    {0x1100, 0x11FF},                                      // parts of Korean syllables
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x2010, 0x2012},  // hyphens
    {0x2024, 0x2025},                                      // dot leaders
    {0x2041, 0x2041}, {0x2044, 0x2044},                    // slashes
    {0x20D0, 0x20FF},                                      // marks around a character
    {0x2212, 0x2212},                                      // minus
    {0x2215, 0x2216}, {0x2236, 0x2236}, {0x29F8, 0x29F9}, {0x3099, 0x309A},  // marks of kana
    {0xA789, 0xA789},                                                        // a colon
    {0xA960, 0xA97F}, {0xD7B0, 0xD7FF}, {0xFE20, 0xFE2F}, {0xFE4D, 0xFE4F}, {0xFE52, 0xFE52},
    {0xFE58, 0xFE58}, {0xFE63, 0xFE63}, {0xFE68, 0xFE68}, {0xFF0D, 0xFF0F}, {0xFF3C, 0xFF3C},
};

constexpr LikeRange kLikeLatin[] = {
    {0x131, 0x131},
    {0x17F, 0x17F},
    {0x1C0, 0x1C0},
    {0x1C3, 0x1C3},
    {0x237, 0x237},
    {0x251, 0x251},
    {0x261, 0x261},
    {0x269, 0x26A},
    {0x280, 0x280},
    {0x299, 0x299},
    {0x29C, 0x29C},
    {0x29F, 0x29F},
    // Greek
    {0x37F, 0x37F},
    {0x391, 0x392},
    {0x395, 0x397},
    {0x399, 0x39A},
    {0x39C, 0x39D},
    {0x39F, 0x39F},
    {0x3A1, 0x3A1},
    {0x3A4, 0x3A5},
    {0x3A7, 0x3A7},
    {0x3B1, 0x3B1},
    {0x3B3, 0x3B3},
    {0x3B9, 0x3BA},
    {0x3BD, 0x3BD},
    {0x3BF, 0x3BF},
    {0x3C1, 0x3C1},
    {0x3C3, 0x3C3},
    {0x3C5, 0x3C5},
    {0x3C7, 0x3C7},
    {0x3D2, 0x3D2},
    {0x3DC, 0x3DC},
    {0x3E8, 0x3E8},
    {0x3EC, 0x3EC},
    {0x3F1, 0x3F3},
    {0x3F9, 0x3FA},
    // Cyrillic
    {0x405, 0x406},
    {0x408, 0x408},
    {0x410, 0x410},
    {0x412, 0x412},
    {0x415, 0x415},
    {0x417, 0x417},
    {0x41A, 0x41A},
    {0x41C, 0x41E},
    {0x420, 0x423},
    {0x425, 0x425},
    {0x42C, 0x42C},
    {0x430, 0x431},
    {0x433, 0x433},
    {0x435, 0x435},
    {0x43A, 0x43A},
    {0x43E, 0x43E},
    {0x440, 0x441},
    {0x443, 0x443},
    {0x445, 0x445},
    {0x44C, 0x44C},
    {0x455, 0x456},
    {0x458, 0x458},
    {0x461, 0x461},
    {0x474, 0x475},
    {0x4AE, 0x4AF},
    {0x4BB, 0x4BB},
    {0x4BD, 0x4BD},
    {0x4C0, 0x4C0},
    {0x4CF, 0x4CF},
    {0x500, 0x501},
    {0x50C, 0x50C},
    {0x51A, 0x51D},
    // Armenian
    {0x53C, 0x53C},
    {0x54D, 0x54D},
    {0x54F, 0x54F},
    {0x555, 0x555},
    {0x563, 0x563},
    {0x566, 0x566},
    {0x56C, 0x56C},
    {0x570, 0x570},
    {0x575, 0x575},
    {0x578, 0x578},
    {0x57D, 0x57D},
    {0x581, 0x581},
    {0x584, 0x585},
    // Hebrew and Arabic letters and digits that look like l and o
    {0x5D5, 0x5D5},
    {0x5D8, 0x5D8},
    {0x5DF, 0x5DF},
    {0x5E1, 0x5E1},
    {0x627, 0x627},
    {0x647, 0x647},
    {0x661, 0x661},
    {0x665, 0x665},
    {0x6BE, 0x6BE},
    {0x6C1, 0x6C1},
    {0x6D5, 0x6D5},
    {0x6F1, 0x6F1},
    {0x6F5, 0x6F5},
    // zeros, and Cherokee (0x13A0)
    {0x7C0, 0x7C0},
    {0x966, 0x966},
    {0x9E6, 0x9E6},
    {0xA66, 0xA66},
    {0xAE6, 0xAE6},
    {0xB66, 0xB66},
    {0xBE6, 0xBE6},
    {0xC66, 0xC66},
    {0xCE6, 0xCE6},
    {0xD20, 0xD20},
    {0xD66, 0xD66},
    {0xE50, 0xE50},
    {0xED0, 0xED0},
    {0x1040, 0x1040},
    {0x13A0, 0x13F5},
    {0x17E0, 0x17E0},
    {0x1C80, 0x1C88},  // old Cyrillic forms
    {0x1D00, 0x1D2B},  // small capitals
    {0x1E9D, 0x1E9D},
    {0x2102, 0x2102},
    {0x210A, 0x2115},
    {0x2119, 0x211D},
    {0x2124, 0x2124},
    {0x212A, 0x212A},  // the sign of kelvin, another K
    {0x212C, 0x2134},
    {0x2139, 0x2139},
    {0x213D, 0x213D},
    {0x2145, 0x2149},
    {0x2160, 0x217F},  // Roman numerals
    {0x2C60, 0x2C7F},
    {0x2C80, 0x2CE3},  // Coptic
    {0xA4D0, 0xA4FD},  // Lisu
    {0xA731, 0xA731},
    {0xAB30, 0xAB6F},
    {0xAB70, 0xABBF},
    {0xFB00, 0xFB06},  // ligatures
    {0xFF10, 0xFF19},
    {0xFF21, 0xFF3A},
    {0xFF41, 0xFF5A},    // full width
    {0x10280, 0x1044F},  // ancient scripts
    {0x118A0, 0x118FF},
    {0x1D400, 0x1D7FF},  // mathematical letters and digits
    {0x1F110, 0x1F12F},
    {0x1FBF0, 0x1FBF9},
};

template <std::size_t N>
constexpr bool isSorted(const LikeRange (&ranges)[N]) {
  for (std::size_t at = 1; at < N; ++at)
    if (ranges[at].first <= ranges[at - 1].last) return false;
  return true;
}
static_assert(isSorted(kCombining) && isSorted(kLikeLatin));

/// The script of a letter; nothing for what belongs to none of those above.
std::optional<Script> scriptOf(char32_t code) {
  if ((code >= 0x370 && code <= 0x3FF) || (code >= 0x1F00 && code <= 0x1FFF)) return Script::greek;
  if (code >= 0x400 && code <= 0x52F) return Script::cyrillic;
  if (code >= 0x530 && code <= 0x58F) return Script::armenian;
  if (code >= 0x590 && code <= 0x5FF) return Script::hebrew;
  if (code >= 0x600 && code <= 0x6FF) return Script::arabic;
  const bool full_width = code >= 0xFF00 && code <= 0xFF5E;
  if (full_width || (code >= 0x3041 && code <= 0x9FFF) || (code >= 0xAC00 && code <= 0xD7A3)) return Script::kana;
  return std::nullopt;
}

bool isLatin(char32_t code) {
  const char32_t folded = code | 0x20U;
  return (folded >= 'a' && folded <= 'z') || (code >= 0xC0 && code <= 0x24F && code != 0xD7 && code != 0xF7) ||
         (code >= 0x1E00 && code <= 0x1EFF);
}

unsigned bit(Script script) { return 1U << static_cast<unsigned>(script); }

/// The scripts of which a name has letters that look like Latin ones, and those of which it has others.
struct Seen {
  unsigned like = 0, plain = 0;
};

}  // namespace

bool isLookAlike(char32_t code) { return code >= 0x80 && (holds(kCombining, code) || holds(kLikeLatin, code)); }

bool looksLikeAnotherName(std::string_view name) {
  Seen seen;
  bool latin = false, like = false;  // in this word
  while (!name.empty()) {
    const Character next = firstCharacter(name);
    name.remove_prefix(next.length);
    if (next.code < 0x80 && !isLatin(next.code)) {
      latin = like = false;
      continue;
    }
    if (holds(kCombining, next.code)) return true;
    const auto script = scriptOf(next.code);
    if (holds(kLikeLatin, next.code)) {
      like = true;
      seen.like |= bit(script.value_or(Script::none));
    } else if (isLatin(next.code)) {
      latin = true;
    } else if (script) {
      seen.plain |= bit(*script);
    }
    if (latin && like) return true;
  }
  return (seen.like & ~seen.plain) != 0;
}

}  // namespace caisson
