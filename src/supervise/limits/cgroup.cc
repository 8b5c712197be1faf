#include "supervise/limits/cgroup.h"

namespace caisson::supervise {

Result<sys::Cgroup> makeCgroup(const plan::Plan& plan, const sys::CgroupBase& base, std::string_view name,
                               bool account_cpu) {
  if (!plan.cgroup) return sys::Cgroup{};
  const plan::CgroupPlan& wanted = *plan.cgroup;
  return sys::Cgroup::create(base, name,
                             {.memory = wanted.memory,
                              .memory_low = wanted.memory_low,
                              .swap = wanted.swap,
                              .pids = wanted.pids,
                              .cpus = wanted.cpus,
                              .cpuset = wanted.cpuset,
                              .io_disks = wanted.io_disks,
                              .io_rbps = wanted.io_rbps,
                              .io_wbps = wanted.io_wbps,
                              .io_riops = wanted.io_riops,
                              .io_wiops = wanted.io_wiops,
                              .account_cpu = account_cpu});
}

}  // namespace caisson::supervise
