// Plans a network mode.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Sets `plan.egress` and related parts for mode `proxy`.
Result<void> planNetwork(const policy::Policy& policy, Plan& plan);

/// Adds variables that name the proxy; programs that ignore them are captured too.
void addProxyVariables(std::map<std::string, std::string>& environment);

/// The content of the sandbox's /etc/resolv.conf; empty: the host's.
std::string resolverFile(const policy::Policy& policy);

}  // namespace caisson::plan
