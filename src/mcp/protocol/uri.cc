#include "mcp/protocol/uri.h"

namespace caisson::mcp {
namespace {

int digitOf(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::string> decodePercent(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      if (text[at] == 0) return std::nullopt;
      bytes += text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = digitOf(text[at + 1]);
    const int low = digitOf(text[at + 2]);
    if (high < 0 || low < 0 || high * 16 + low == 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return bytes;
}

std::string encodePercent(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char letter : path) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.' ||
                       letter == '~' || letter == '/';
    if (plain) {
      text += letter;
    } else {
      text += '%';
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    }
  }
  return text;
}

}  // namespace caisson::mcp
