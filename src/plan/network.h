// What a network mode means for a plan.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Sets up `plan.egress` and what goes with it for mode `proxy`.
Result<void> planNetwork(const policy::Policy& policy, Plan& plan);

/// Variables that point programs at the proxy; those that ignore them are captured all the same.
void addProxyVariables(std::map<std::string, std::string>& environment);

/// The sandbox's /etc/resolv.conf; empty: the host's own.
std::string resolverFile(const policy::Policy& policy);

}  // namespace caisson::plan
