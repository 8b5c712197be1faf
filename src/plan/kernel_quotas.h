// Bounds on kernel objects that the kernel counts per user, written into the sandbox's own user namespace.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Adds steps behind the one that makes the root. After namespaces and network of the plan are decided.
void planKernelQuotas(const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
