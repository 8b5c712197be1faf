// Plans a network mode.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Sets `plan.egress` and related parts for mode `proxy`, and the ports between the sandbox and the host's loopback.
Result<void> planNetwork(const policy::Policy& policy, Plan& plan);

/// Expands ports and ranges, sorted and without repetition; at most `most` and one more, to show that there are more.
std::vector<std::uint16_t> expandPorts(const std::vector<std::string>& entries, std::size_t most);

/// Adds variables that name the proxy; programs that ignore them are captured too.
void addProxyVariables(std::map<std::string, std::string>& environment);

/// The content of the sandbox's /etc/resolv.conf; empty: the host's.
std::string resolverFile(const policy::Policy& policy);

}  // namespace caisson::plan
