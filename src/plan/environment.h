// The payload's environment variables, from the `environment` section of its policy.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Whether a variable changes what a program loads or runs before its own code. Mode `inherit` leaves these out;
/// environment.pass can name them.
bool altersLoading(std::string_view name);

/// The payload's variables as "NAME=value". Call after the steps, the egress and the root are planned.
std::vector<std::string> planEnvironment(const policy::Policy& policy, const HostFacts& host, const Plan& plan,
                                         bool interactive);

}  // namespace caisson::plan
