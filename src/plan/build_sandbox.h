// A plan for a sandbox that outlives its commands: without one, so that the policy's rules for commands judge each
// command when it comes (setCommand() in plan.h) and no other.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// As build(), for no command. `interactive` and `learn` as in Command.
Result<Plan> buildSandbox(const policy::Policy& policy, const HostFacts& host, bool interactive, bool learn = false);

}  // namespace caisson::plan
