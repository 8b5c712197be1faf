// Takes protections out of a plan, by name, so that a test can show what happens without them. The names are in
// weaken.cc. Never for root: what gets through gets through for real.
#pragma once

#include <string>

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::test {

/// The very plan that caisson would carry out, as data that can be weakened.
Result<plan::Plan> planToWeaken(const Request& request);

/// False if no protection is called that.
bool weaken(plan::Plan& plan, const std::string& name);

}  // namespace caisson::test
