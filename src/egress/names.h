// Synthetic addresses, which the policy resolver returns instead of a host's real address.
//
// Each name gets a unique address, so the egress knows the host name of every connection in any protocol, including ssh
// and databases, and never has to trust a real address.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "egress/address.h"

namespace caisson::egress {

class SyntheticNames {
 public:
  using Clock = std::chrono::steady_clock;

  /// Returns the address of `name`, which the rules allow, and assigns one to a new name; stable for the life of the
  /// sandbox. nullopt if there are too many names.
  std::optional<Address> addressOf(std::string_view name, bool v4);
  /// The same for a name that no rule lists. Such names cost a program nothing, so they have a small share of the
  /// addresses: one is reused for another name after kUnlistedTime. nullopt while all are in use.
  std::optional<Address> addressOfUnlisted(std::string_view name, Clock::time_point now);
  /// The name behind an address, or empty.
  [[nodiscard]] std::string_view nameOf(const Address& address) const;
  /// Whether the address is in the synthetic ranges (198.18.0.0/15, fdca:1550::/96).
  static bool isSynthetic(const Address& address);

 private:
  struct Unlisted {
    std::string name;
    Clock::time_point used;
  };
  /// Longer than the lifetime of our answers, and than most programs keep one.
  static constexpr auto kUnlistedTime = std::chrono::minutes(2);

  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::string> names_;  ///< the last number of an address is an index of this, plus 1
  std::vector<Unlisted> unlisted_;  ///< the same, plus kFirstUnlisted
  std::size_t next_unlisted_ = 0;   ///< the one that is reused next
};

}  // namespace caisson::egress
