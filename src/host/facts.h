// Probes the host: the facts a plan is made from.
#pragma once

#include "plan/plan.h"
#include "sys/cgroup.h"

namespace caisson::host {

/// Collects facts for `policy`, as seen by this process. Reads only; a missing feature is a fact, not an error.
/// `own_scope`: if no cgroup can be created, first moves this process into a scope of the user's service manager; this
/// is the only change made here. `found`, if given, gets the cgroup base, so that the caller need not search again.
plan::HostFacts collectFacts(const policy::Policy& policy, bool own_scope = false, sys::CgroupBase* found = nullptr);

/// Whether a file system is mounted below the directory.
bool hasMountsBelow(const std::string& directory);

/// The processors on which this process may run, up to number 1023; none if that cannot be read.
std::vector<std::uint32_t> usableProcessors();

}  // namespace caisson::host
