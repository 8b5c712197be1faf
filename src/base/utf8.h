// Strict UTF-8 decoding, one character at a time: rejects overlong forms, surrogates and values above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace caisson {

struct Character {
  char32_t code = 0;       ///< the byte's value if it is invalid
  std::size_t length = 1;  ///< in bytes; 1 for an invalid byte
  bool valid = false;
};

/// Decodes the first character of `text`, which must not be empty.
constexpr Character firstCharacter(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {lead, 1, false};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80U) return {lead, 1, false};
    code = (code << 6U) | (byte(at) & 0x3FU);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[length] || surrogate || code > 0x10FFFF) return {lead, 1, false};
  return {code, length, true};
}

constexpr bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    const Character next = firstCharacter(text);
    if (!next.valid) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

}  // namespace caisson
