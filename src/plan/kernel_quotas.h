// Limits on kernel objects that the kernel counts per user, written into the sandbox's user namespace.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Inserts SetKernelQuota steps after the mount of the sandbox's proc, through which they are written, or without one
/// after the first step: a quarter of the host's inotify limits, no user namespaces, no fanotify. Does nothing without
/// a user and a mount namespace. Call when namespaces and root are planned.
void planKernelQuotas(const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
