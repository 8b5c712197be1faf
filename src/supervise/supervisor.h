// Supervises one running sandbox to its end: streams, signals, time, and the result.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"
#include "sys/cgroup.h"

namespace caisson::supervise {

/// Launches `plan` and waits for its end. Everything that happens, including a failed set-up, is in the result.
/// `cgroups`: where to create cgroups, if the caller already found out.
RunResult supervise(const plan::Plan& plan, const Request& request, sys::CgroupBase cgroups = {});

}  // namespace caisson::supervise
