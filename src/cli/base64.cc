#include "cli/base64.h"

namespace caisson::cli {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view chunk = bytes.substr(at, 3);
    unsigned bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = (bits << 8U) | (i < chunk.size() ? static_cast<unsigned char>(chunk[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) out += i <= chunk.size() ? kAlphabet[(bits >> (18U - 6U * i)) & 0x3FU] : '=';
  }
  return out;
}

}  // namespace caisson::cli
