// How much a payload may write to disk, and which class of SPEC F8 holds it.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// After the mounts are planned. Refused where the policy insists on class `hard` and this host gives only `watched`.
Result<void> planQuota(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
