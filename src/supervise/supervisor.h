// Watches one running sandbox to its end: streams, signals, time, and what the result says.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Launches `plan` and waits for its end. Everything that happens, a failed set-up included, is in the result.
RunResult supervise(const plan::Plan& plan, const Request& request);

}  // namespace caisson::supervise
