// Limits on kernel objects that the kernel counts per user, written into the sandbox's user namespace.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Adds steps after the one that creates the root; none without a user and a mount namespace. Call after these and the
/// steps are planned.
void planKernelQuotas(const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
