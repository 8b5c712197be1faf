#include "base/hmac.h"

#include <array>
#include <cstdint>

#include "base/sha256.h"

namespace caisson {

std::string hmacSha256(std::string_view key, std::string_view text) {
  std::array<std::uint8_t, 64> inner{};
  std::array<std::uint8_t, 64> outer{};
  for (std::size_t at = 0; at < inner.size(); ++at) {
    const auto byte = static_cast<std::uint8_t>(at < key.size() ? key[at] : 0);
    inner[at] = byte ^ 0x36U;
    outer[at] = byte ^ 0x5CU;
  }
  const Digest first = Sha256().add(inner.data(), inner.size()).add(text).finish();
  return hex(Sha256().add(outer.data(), outer.size()).add(first).finish());
}

bool sameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t at = 0; at < a.size(); ++at) difference |= static_cast<unsigned char>(a[at] ^ b[at]);
  return difference == 0;
}

}  // namespace caisson
