#include "base/json_escape.h"

#include <algorithm>
#include <string_view>

#include "base/deceptive_text.h"
#include "base/utf8.h"

namespace caisson {
namespace {

void appendUnit(std::string& out, unsigned unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kDigits[(unit >> shift) & 0xFU];
}

}  // namespace

void appendJsonEscape(std::string& out, char32_t code) {
  switch (code) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (code < 0x10000) return appendUnit(out, static_cast<unsigned>(code));
  const auto beyond = static_cast<unsigned>(code) - 0x10000U;
  appendUnit(out, 0xD800U + (beyond >> 10U));
  appendUnit(out, 0xDC00U + (beyond & 0x3FFU));
}

std::string withEscapes(std::string json) {
  const auto is_plain = [](char letter) { return static_cast<unsigned char>(letter) < 0x7F; };
  if (std::ranges::all_of(json, is_plain)) return json;
  std::string out;
  out.reserve(json.size() + 16);
  std::string_view rest = json;
  while (!rest.empty()) {
    const auto plain = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_plain) - rest.begin());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const Character next = firstCharacter(rest);
    if (!next.valid) {
      out += "\xEF\xBF\xBD";
    } else if (isDeceptive(next.code)) {
      appendJsonEscape(out, next.code);
    } else {
      out += rest.substr(0, next.length);
    }
    rest.remove_prefix(next.length);
  }
  return out;
}

}  // namespace caisson
