#include "base/deceptive_text.h"

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace caisson {
namespace {

struct Range {
  char32_t first, last;
};

// Sorted. Control characters, and characters that are invisible or blank, reorder text or break lines.
constexpr Range kDeceptive[] = {
    {0x00, 0x1F},        // controls
    {0x7F, 0xA0},        // DEL, the C1 controls (0x9B alone starts an escape sequence), no-break space
    {0xAD, 0xAD},        // soft hyphen
    {0x34F, 0x34F},      // combining grapheme joiner
    {0x61C, 0x61C},      // Arabic letter mark
    {0x115F, 0x1160},    // Hangul fillers
    {0x1680, 0x1680},    // Ogham space
    {0x17B4, 0x17B5},    // Khmer inherent vowels, not shown
    {0x180B, 0x180F},    // Mongolian selectors and vowel separator
    {0x2000, 0x200F},    // blanks of other widths, zero-width characters, left-to-right and right-to-left marks
    {0x2028, 0x202F},    // line and paragraph separators, bidirectional embeddings and overrides, narrow blank
    {0x205F, 0x206F},    // mathematical blank, word joiner, invisible operators, bidirectional isolates
    {0x2800, 0x2800},    // empty braille pattern
    {0x3000, 0x3000},    // ideographic space
    {0x3164, 0x3164},    // Hangul filler
    {0xFE00, 0xFE0F},    // variation selectors
    {0xFEFF, 0xFEFF},    // zero-width no-break space
    {0xFFA0, 0xFFA0},    // half-width Hangul filler
    {0xFFF0, 0xFFFB},    // interlinear annotation
    {0x1D173, 0x1D17A},  // musical controls
    {0xE0000, 0xE0FFF},  // tags and further variation selectors
};

}  // namespace

bool isDeceptive(char32_t code) {
  const auto* range = std::lower_bound(std::begin(kDeceptive), std::end(kDeceptive), code,
                                       [](const Range& one, char32_t wanted) { return one.last < wanted; });
  return range != std::end(kDeceptive) && code >= range->first;
}

bool isReadable(std::string_view text) {
  while (!text.empty()) {
    const Character next = firstCharacter(text);
    if (!next.valid || isDeceptive(next.code)) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

}  // namespace caisson
