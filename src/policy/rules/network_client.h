// Detects commands whose program is a network client, so that the user can be asked before it fails.
// Advice only: a program that is not detected has no more network than one that is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/model.h"

namespace caisson::policy {

struct NetworkClient {
  std::string sign;                ///< "curl", "git clone"
  std::vector<std::string> hosts;  ///< entries for network.allowed_hosts that it will need: "example.org", "preset:npm"

  bool operator==(const NetworkClient&) const = default;
};

/// Looks at the program that `argv` starts; of `sh -c TEXT` at the first command in TEXT. nullopt: not a known client,
/// or it needs no public host here.
std::optional<NetworkClient> networkClient(std::span<const std::string> argv);

/// One line for people: what the program needs, and the flags that would give it; for a command of a session, what
/// gives it to `session`.
std::string describeNetworkNeed(const NetworkClient& client, std::string_view session = {});

/// Gives an offline policy a network in which no host is allowed yet. Drops what the policy allows (hosts, ports,
/// credentials): it had no effect while offline, so its owner was never asked about it; `allowed_ports` becomes the
/// default again. Denials, limits, ports between
/// sandbox and host, name servers and proxy stay; the question to the owner must name the latter two. `private_hosts`
/// are the exceptions of the owner's configuration.
void openNetwork(Network& network, std::vector<std::string> private_hosts);

}  // namespace caisson::policy
