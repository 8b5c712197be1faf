#include "base/safe_text.h"

#include <charconv>

#include "base/deceptive_text.h"
#include "base/utf8.h"

namespace caisson {
namespace {

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

std::string safeLine(std::string_view text) { return escape(text, false); }
std::string safeLines(std::string_view text) { return escape(text, true); }

}  // namespace caisson
