// Synthetic addresses: what the policy resolver answers instead of a host's real address.
//
// Programs connect to the address they were told. If every name has one of its own, any protocol carries its host name
// to the egress, ssh and databases included, and no real address ever has to be trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "egress/address.h"

namespace caisson::egress {

class SyntheticNames {
 public:
  /// The address of `name`, the same for as long as the sandbox lives; nothing once there are too many.
  std::optional<Address> addressOf(std::string_view name, bool v4);
  /// The name behind an address, or empty.
  [[nodiscard]] std::string_view nameOf(const Address& address) const;
  /// Whether the address lies in the ranges that are handed out (198.18.0.0/15, fdca:1550::/96).
  static bool isSynthetic(const Address& address);

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::string> names_;
};

}  // namespace caisson::egress
