#include "egress/names.h"

#include <algorithm>
#include <array>

namespace caisson::egress {
namespace {

constexpr std::uint32_t kV4Base = 0xc6120000;  // 198.18.0.0
constexpr std::uint32_t kV4Mask = 0xfffe0000;
constexpr std::array<std::uint8_t, 12> kV6Base{0xfd, 0xca, 0x15, 0x50};
constexpr std::size_t kMaxUnlisted = 1024, kMaxListed = 16384 - kMaxUnlisted;
constexpr std::uint32_t kFirstUnlisted = kMaxListed + 1;

bool inV6(const Address& address) { return std::equal(kV6Base.begin(), kV6Base.end(), address.bytes().begin()); }

}  // namespace

bool SyntheticNames::isSynthetic(const Address& address) {
  return address.isV4() ? (address.v4Value() & kV4Mask) == kV4Base : inV6(address);
}

std::optional<Address> SyntheticNames::addressOf(std::string_view name, bool v4) {
  auto found = index_.find(std::string(name));
  if (found == index_.end() || found->second >= kFirstUnlisted) {  // one that was not listed before gets its own
    if (names_.size() >= kMaxListed) return std::nullopt;
    names_.emplace_back(name);
    found = index_.insert_or_assign(std::string(name), static_cast<std::uint32_t>(names_.size())).first;
  }
  if (v4) return Address::v4(kV4Base + found->second);
  std::array<std::uint8_t, 16> bytes{};
  std::copy(kV6Base.begin(), kV6Base.end(), bytes.begin());
  for (std::size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<std::uint8_t>(found->second >> (24 - 8 * i));
  return Address::v6(bytes);
}

std::optional<Address> SyntheticNames::addressOfUnlisted(std::string_view name, Clock::time_point now) {
  if (const auto found = index_.find(std::string(name)); found != index_.end()) {
    if (found->second >= kFirstUnlisted) unlisted_[found->second - kFirstUnlisted].used = now;
    return Address::v4(kV4Base + found->second);
  }
  std::size_t at = unlisted_.size();
  if (at < kMaxUnlisted) {
    unlisted_.emplace_back();
  } else {
    // Oldest first, but not one that was asked for again since: at most one round.
    for (std::size_t i = 0; i < kMaxUnlisted && at == kMaxUnlisted; ++i) {
      if (now - unlisted_[next_unlisted_].used >= kUnlistedTime) at = next_unlisted_;
      next_unlisted_ = (next_unlisted_ + 1) % kMaxUnlisted;
    }
    if (at == kMaxUnlisted) return std::nullopt;
    const auto old = index_.find(unlisted_[at].name);
    if (old != index_.end() && old->second == kFirstUnlisted + at) index_.erase(old);
  }
  unlisted_[at] = {std::string(name), now};
  const auto number = kFirstUnlisted + static_cast<std::uint32_t>(at);
  index_.insert_or_assign(std::string(name), number);
  return Address::v4(kV4Base + number);
}

std::string_view SyntheticNames::nameOf(const Address& address) const {
  std::uint32_t index = 0;
  if (address.isV4()) {
    index = address.v4Value() - kV4Base;
  } else {
    if (!inV6(address)) return {};
    for (std::size_t i = 12; i < 16; ++i) index = index << 8 | address.bytes()[i];
  }
  if (index >= kFirstUnlisted) {
    return index - kFirstUnlisted < unlisted_.size() ? unlisted_[index - kFirstUnlisted].name : std::string_view();
  }
  if (index == 0 || index > names_.size()) return {};
  return names_[index - 1];
}

}  // namespace caisson::egress
