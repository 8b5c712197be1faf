#include "cli/safe_text.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace caisson::cli {
namespace {

struct Range {
  char32_t first, last;
};

// Sorted. Invisible, reordering or line-breaking characters beyond the ASCII controls.
constexpr Range kDeceptive[] = {
    {0x00, 0x1F},        // controls
    {0x7F, 0x9F},        // DEL and the C1 controls (0x9B alone starts an escape sequence)
    {0xAD, 0xAD},        // soft hyphen
    {0x34F, 0x34F},      // combining grapheme joiner
    {0x61C, 0x61C},      // Arabic letter mark
    {0x115F, 0x1160},    // Hangul fillers
    {0x17B4, 0x17B5},    // Khmer inherent vowels, not shown
    {0x180B, 0x180F},    // Mongolian selectors and vowel separator
    {0x200B, 0x200F},    // zero-width characters, left-to-right and right-to-left marks
    {0x2028, 0x202E},    // line and paragraph separators, bidirectional embeddings and overrides
    {0x2060, 0x206F},    // word joiner, invisible operators, bidirectional isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xFE00, 0xFE0F},    // variation selectors
    {0xFEFF, 0xFEFF},    // zero-width no-break space
    {0xFFA0, 0xFFA0},    // half-width Hangul filler
    {0xFFF0, 0xFFFB},    // interlinear annotation
    {0x1D173, 0x1D17A},  // musical controls
    {0xE0000, 0xE0FFF},  // tags and further variation selectors
};

void appendHex(std::string& out, char32_t code, std::size_t width) {
  char digits[8];
  const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<unsigned>(code), 16).ptr;
  const auto count = static_cast<std::size_t>(end - digits);
  out.append(width > count ? width - count : 0, '0');
  out.append(digits, count);
}

void appendEscaped(std::string& out, char32_t code) {
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\t') {
    out += "\\t";
  } else if (code == '\r') {
    out += "\\r";
  } else if (code < 0x80) {
    out += "\\x";
    appendHex(out, code, 2);
  } else {
    out += "\\u{";
    appendHex(out, code, 4);
    out += "}";
  }
}

std::string escape(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = firstCharacter(text);
    const bool layout = keep_lines && (next.code == '\n' || next.code == '\t');
    if (!next.valid) {
      out += "\\x";
      appendHex(out, next.code, 2);
    } else if (isDeceptive(next.code) && !layout) {
      appendEscaped(out, next.code);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return out;
}

}  // namespace

bool isDeceptive(char32_t code) {
  const auto* range = std::lower_bound(std::begin(kDeceptive), std::end(kDeceptive), code,
                                       [](const Range& one, char32_t wanted) { return one.last < wanted; });
  return range != std::end(kDeceptive) && code >= range->first;
}

std::string safeLine(std::string_view text) { return escape(text, false); }
std::string safeLines(std::string_view text) { return escape(text, true); }

}  // namespace caisson::cli
