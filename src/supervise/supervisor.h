// Watches one running sandbox to its end: streams, signals, time, and what the result says.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"
#include "sys/cgroup.h"

namespace caisson::supervise {

/// Launches `plan` and waits for its end. Everything that happens, a failed set-up included, is in the result.
/// `cgroups`: where they can be made, if the caller has looked already.
RunResult supervise(const plan::Plan& plan, const Request& request, sys::CgroupBase cgroups = {});

}  // namespace caisson::supervise
