// Plans a network mode.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Sets what the network mode needs: `proxy`: plan.egress; `host`: no network namespace; and the ports between the
/// sandbox and the host's loopback. An error if the level or tier cannot have it.
Result<void> planNetwork(const policy::Policy& policy, Plan& plan);

/// Expands ports and ranges, sorted and without repetition. Stops at `most` + 1 ports, which shows that there are more.
std::vector<std::uint16_t> expandPorts(const std::vector<std::string>& entries, std::size_t most);

/// Adds variables that name the proxy (http_proxy ...); connections of programs that ignore them are captured.
void addProxyVariables(std::map<std::string, std::string>& environment);

/// The content of the sandbox's /etc/resolv.conf; empty: show the host's.
std::string resolverFile(const policy::Policy& policy);

}  // namespace caisson::plan
