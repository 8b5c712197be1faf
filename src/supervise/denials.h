// Refusals in words: which rule, what it was about, and what would allow it (SPEC S5).
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// For a system call that the filter refused. `call` has the name and the arguments.
Denial explainRefusedCall(const plan::Plan& plan, const Violation& call);

/// For a process that died of SIGSYS: where nobody listens, calls of a foreign architecture end it.
void noteUnheardForeignCall(RunResult& result);

/// Why the sandbox was ended: one attempt, or the last of `many`.
std::string describeEscape(const plan::Plan& plan, const Violation& call, bool many);

/// Adds the limits that the payload met, whether or not they ended it. `full`: the sized directory that had no room.
void explainLimits(const plan::Plan& plan, const std::string& full, RunResult& result);

}  // namespace caisson::supervise
