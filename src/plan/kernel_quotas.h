// Limits on kernel objects that the kernel counts per user, written into the sandbox's user namespace.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Inserts its steps after the first one, which creates the root; none without a user and a mount namespace. Call when
/// namespaces and root are planned.
void planKernelQuotas(const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
