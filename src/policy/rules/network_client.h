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
  std::vector<std::string> hosts;  ///< for network.allowed_hosts: "example.org", "preset:npm"; empty: not known

  bool operator==(const NetworkClient&) const = default;
};

/// Looks at the program that `argv` starts; of `sh -c TEXT` at the first command in TEXT. nullopt: not a known client,
/// or it needs no public host here.
std::optional<NetworkClient> networkClient(std::span<const std::string> argv);

/// One line for people: what the program needs, and the flags that would give it; for a command of a session, what
/// gives it to `session`.
std::string describeNetworkNeed(const NetworkClient& client, std::string_view session = {});

/// Sets the mode of an offline policy to `proxy`, with no host allowed yet. Resets what the policy allows (hosts,
/// ports, credentials, TLS exceptions) to the default: without effect while offline, it was never approved. Denials,
/// limits, ports between sandbox and host, name servers and proxy stay; the prompt to the owner must name the latter
/// two. `private_hosts`, the exceptions of the owner's configuration, replace the policy's.
void openNetwork(Network& network, std::vector<std::string> private_hosts);

}  // namespace caisson::policy
