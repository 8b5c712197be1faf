// Resource limits: what a cgroup enforces, what rlimits enforce, what the supervisor does.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// How many processes and threads there may be together, which is what the kernel counts.
std::uint64_t maxTasks(const policy::Policy& policy);

/// Sets plan.cgroup to the limits that a cgroup can enforce here. The others become a warning, or an error if the
/// policy requires the cgroup; missing limits on disk I/O are always an error.
Result<void> planCgroup(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Sets rlimits and what the supervisor limits. Call after planCgroup(). `interactive`: without a default time limit.
void planLimits(const policy::Policy& policy, const HostFacts& host, bool interactive, Plan& plan);

}  // namespace caisson::plan
