// A plan for a sandbox that outlives its commands. It has no command: setCommand() (plan.h) checks each one against the
// policy's rules and sets it.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// As build(), without a command. `interactive` and `learn` as in Command.
Result<Plan> buildSandbox(const policy::Policy& policy, const HostFacts& host, bool interactive, bool learn = false);

}  // namespace caisson::plan
