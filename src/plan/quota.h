// How much a payload may write to disk, and who enforces it: the kernel (class `hard`) or the supervisor (`watched`).
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Call after the mounts are planned. Fails if the policy requires class `hard` and this host has only `watched`.
Result<void> planQuota(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
