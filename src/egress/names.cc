#include "egress/names.h"

#include <algorithm>
#include <array>

namespace caisson::egress {
namespace {

constexpr std::uint32_t kV4Base = 0xc6120000;  // 198.18.0.0
constexpr std::uint32_t kV4Mask = 0xfffe0000;
constexpr std::array<std::uint8_t, 12> kV6Base{0xfd, 0xca, 0x15, 0x50};
constexpr std::size_t kMaxNames = 16384;

bool inV6(const Address& address) { return std::equal(kV6Base.begin(), kV6Base.end(), address.bytes().begin()); }

}  // namespace

bool SyntheticNames::isSynthetic(const Address& address) {
  return address.isV4() ? (address.v4Value() & kV4Mask) == kV4Base : inV6(address);
}

std::optional<Address> SyntheticNames::addressOf(std::string_view name, bool v4) {
  auto found = index_.find(std::string(name));
  if (found == index_.end()) {
    if (names_.size() >= kMaxNames) return std::nullopt;
    names_.emplace_back(name);
    found = index_.emplace(std::string(name), static_cast<std::uint32_t>(names_.size())).first;
  }
  if (v4) return Address::v4(kV4Base + found->second);
  std::array<std::uint8_t, 16> bytes{};
  std::copy(kV6Base.begin(), kV6Base.end(), bytes.begin());
  for (std::size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(found->second >> (24 - 8 * i));
  return Address::v6(bytes);
}

std::string_view SyntheticNames::nameOf(const Address& address) const {
  std::uint32_t index = 0;
  if (address.isV4()) {
    index = address.v4Value() - kV4Base;
  } else {
    if (!inV6(address)) return {};
    for (std::size_t i = 12; i < 16; ++i) index = index << 8 | address.bytes()[i];
  }
  if (index == 0 || index > names_.size()) return {};
  return names_[index - 1];
}

}  // namespace caisson::egress
