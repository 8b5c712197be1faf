#include "base/percent.h"

#include "base/hex.h"
#include "base/text.h"

namespace caisson {

std::optional<std::string> decodePercent(std::string_view text, bool plus) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char byte = text[at] == '+' && plus ? ' ' : text[at];
    if (byte == '%') {
      if (text.size() - at < 3) return std::nullopt;
      const int high = hexDigit(text[at + 1]);
      const int low = hexDigit(text[at + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      byte = static_cast<char>(high * 16 + low);
      at += 2;
    }
    if (byte == '\0') return std::nullopt;
    decoded += byte;
  }
  return decoded;
}

std::string encodePercent(std::string_view text, std::string_view kept) {
  constexpr std::string_view kUpperDigits = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved = "-._~";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (isDigit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || kUnreserved.contains(c) || kept.contains(c)) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kUpperDigits[byte >> 4U];
      encoded += kUpperDigits[byte & 15U];
    }
  }
  return encoded;
}

}  // namespace caisson
