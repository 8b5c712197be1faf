// Observes the host: the facts a plan is made from.
#pragma once

#include "plan/plan.h"
#include "sys/cgroup.h"

namespace caisson::supervise {

/// Facts for `policy`, seen from this process. Reads only; what is missing is a fact, not an error.
/// `own_scope`: where no cgroup of ours can be made, first move this process into a scope that the user's service
/// manager gives; the one thing here that changes something. `found`, if given, gets the place that was found for
/// them: whoever launches soon need not look again.
plan::HostFacts observeHost(const policy::Policy& policy, bool own_scope = false, sys::CgroupBase* found = nullptr);

/// The processors that this process may run on.
std::vector<std::uint32_t> observeCpus();

}  // namespace caisson::supervise
