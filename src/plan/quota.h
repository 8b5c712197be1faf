// How much a payload may write to disk, and who enforces it: the kernel (class `hard`) or the supervisor (`watched`).
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Sets plan.disk, if something can only be watched, and the limit on the size of files. Call after the mounts are
/// planned. Fails if the policy requires class `hard` and something can only be watched.
Result<void> planQuota(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
