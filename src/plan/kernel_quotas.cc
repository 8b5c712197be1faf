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
  // What no filter lets payloads create. Other kinds of namespaces need a capability, which a payload could only get
  // in a new user namespace, and fanotify marks need a group. Each value takes 5 us of a launch.
  set("max_user_namespaces", 0);
  set("max_fanotify_groups", 0);
  const auto proc =
      std::ranges::find_if(plan.steps, [](const Step& step) { return std::holds_alternative<MountProc>(step); });
  const auto before = proc != plan.steps.end() ? proc : plan.steps.begin();
  plan.steps.insert(before + 1, quotas.begin(), quotas.end());
  plan.layers["kernel_quotas"] = "inotify, fanotify, namespaces";
}

}  // namespace caisson::plan
