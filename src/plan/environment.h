// The environment a payload gets: clean, with only what is named (X8).
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Whether a variable changes what a program loads or runs before its own code: passed on only if named.
bool altersLoading(std::string_view name);

std::vector<std::string> planEnvironment(const policy::Policy& policy, const HostFacts& host, const Plan& plan,
                                         bool interactive);

}  // namespace caisson::plan
