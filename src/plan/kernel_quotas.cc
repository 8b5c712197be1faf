#include "plan/kernel_quotas.h"

#include <algorithm>

namespace caisson::plan {
namespace {

constexpr std::uint64_t kShare = 4;    // a sandbox gets this fraction of its caller's limit
constexpr std::uint64_t kMinimum = 8;  // few programs work with fewer

}  // namespace

void planKernelQuotas(const HostFacts& host, Plan& plan) {
  if (!plan.namespaces.user || !plan.namespaces.mount || plan.steps.empty()) return;
  std::vector<Step> quotas;
  const auto set = [&](const char* name, std::uint64_t value) { quotas.push_back(SetKernelQuota{name, value}); };
  const auto share = [&](const char* name, std::uint64_t whole) {
    if (whole > 0) set(name, std::max(whole / kShare, std::min(whole, kMinimum)));
  };
  share("max_inotify_instances", host.inotify_instances);
  share("max_inotify_watches", host.inotify_watches);
  // Namespaces that no filter lets payloads create. Those that pid 1 creates after the clone count once. Not mount
  // namespaces: every open_tree of the set-up creates one temporarily.
  const auto& own = plan.namespaces;
  for (const char* name : {"max_user_namespaces", "max_pid_namespaces", "max_ipc_namespaces", "max_uts_namespaces",
                           "max_fanotify_groups", "max_fanotify_marks"}) {
    set(name, 0);
  }
  set("max_net_namespaces", own.network ? 1 : 0);
  set("max_cgroup_namespaces", own.cgroup ? 1 : 0);
  set("max_time_namespaces", own.time ? 1 : 0);
  plan.steps.insert(plan.steps.begin() + 1, quotas.begin(), quotas.end());
  plan.layers["kernel_quotas"] = "inotify, fanotify, namespaces";
}

}  // namespace caisson::plan
