// The payload's environment: clean, with only named variables.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Whether a variable changes what a program loads or runs before its own code: passed only if named.
bool altersLoading(std::string_view name);

std::vector<std::string> planEnvironment(const policy::Policy& policy, const HostFacts& host, const Plan& plan,
                                         bool interactive);

}  // namespace caisson::plan
