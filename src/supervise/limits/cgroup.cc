#include "supervise/limits/cgroup.h"

namespace caisson::supervise {

Result<sys::Cgroup> makeCgroup(const plan::Plan& plan, const sys::CgroupBase& base, std::string_view name,
                               bool account_cpu) {
  if (!plan.cgroup) return sys::Cgroup{};
  const plan::CgroupPlan& wish = *plan.cgroup;
  return sys::Cgroup::create(base, name,
                             {.memory = wish.memory,
                              .memory_low = wish.memory_low,
                              .swap = wish.swap,
                              .pids = wish.pids,
                              .cpus = wish.cpus,
                              .cpuset = wish.cpuset,
                              .io_disks = wish.io_disks,
                              .io_rbps = wish.io_rbps,
                              .io_wbps = wish.io_wbps,
                              .io_riops = wish.io_riops,
                              .io_wiops = wish.io_wiops,
                              .account_cpu = account_cpu});
}

}  // namespace caisson::supervise
