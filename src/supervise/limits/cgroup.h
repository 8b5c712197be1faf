// Creates the cgroup of a plan.
#pragma once

#include <string_view>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/cgroup.h"

namespace caisson::supervise {

/// Creates the plan's cgroup, `name`, below `base`. An empty object if the plan has none. `account_cpu`: as in
/// sys::CgroupLimits.
Result<sys::Cgroup> makeCgroup(const plan::Plan& plan, const sys::CgroupBase& base, std::string_view name,
                               bool account_cpu);

}  // namespace caisson::supervise
