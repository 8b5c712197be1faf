// Hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

/// The value of a digit of either case, or -1.
constexpr int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Two lower-case digits per byte.
inline std::string hexText(std::string_view bytes) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHexDigits[byte >> 4U];
    text += kHexDigits[byte & 15U];
  }
  return text;
}

}  // namespace caisson
