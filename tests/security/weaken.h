// Disables protections of a plan, by name, so that a test can show what happens without them. The names are in
// weaken.cc. Never as root: attacks really succeed.
#pragma once

#include <string>

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::test {

/// The plan that caisson would execute, as data that can be weakened.
Result<plan::Plan> planToWeaken(const Request& request);

/// Returns false for an unknown name.
bool weaken(plan::Plan& plan, const std::string& name);

}  // namespace caisson::test
