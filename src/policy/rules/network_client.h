// Detects commands whose program is a network client, so that the user can be asked before it fails.
// Advice only: a program that is not detected has no more network than one that is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

struct NetworkClient {
  std::string sign;                ///< "curl", "git clone"
  std::vector<std::string> hosts;  ///< entries for network.allowed_hosts that it will need: "example.org", "preset:npm"

  bool operator==(const NetworkClient&) const = default;
};

/// Looks at the program that `argv` starts; of `sh -c TEXT` at the first command in TEXT.
std::optional<NetworkClient> networkClient(std::span<const std::string> argv);

/// One line for people: what the program needs, and the flags that would give it; for a command of a session, what
/// gives it to `session`.
std::string describeNetworkNeed(const NetworkClient& client, std::string_view session = {});

}  // namespace caisson::policy
