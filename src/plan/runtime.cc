#include "plan/runtime.h"

#include <algorithm>

#include "plan/executables.h"
#include "plan/optional_layers.h"

namespace caisson::plan {
namespace {

using policy::Runtime;

/// The runtime's own processes are in the sandbox's cgroup.
constexpr std::uint64_t kRuntimeMemory = 64 * policy::kMiB;
/// gVisor's kernel is a process of the sandbox, with the memory of the payload's page cache.
constexpr std::uint64_t kGvisorMemory = 256 * policy::kMiB;
constexpr std::uint64_t kGvisorTasks = 512;

Error runtimeError(Runtime runtime, std::string_view object, std::string_view reason, std::string_view hint) {
  return plainError(Stage::plan, "plan", object, std::string(runtimeName(runtime)) + " " + std::string(reason), hint);
}

/// What no runtime can do here.
Result<void> checkPolicy(const policy::Policy& policy) {
  const Runtime runtime = policy.isolation.runtime;
  if (policy.isolation.level != policy::Level::full || policy.isolation.tier != policy::Tier::namespaces) {
    return fail(runtimeError(runtime, "isolation.runtime",
                             "can only give a sandbox its own root: levels process and none and the landlock tier show "
                             "the host's",
                             "use --level full, or leave out --runtime"));
  }
  if (!policy.process.pass_descriptors.empty()) {
    return fail(runtimeError(runtime, "process.pass_descriptors", "passes no further descriptors of the caller on",
                             "remove the key, or leave out --runtime"));
  }
  return {};
}

/// What needs caisson's pid 1 in the container, which gVisor cannot have.
Result<void> checkWithoutInit(const policy::Policy& policy, bool learn) {
  const auto refuse = [](std::string_view key, std::string_view reason) {
    return fail(runtimeError(Runtime::runsc, key, reason, "use --runtime runc or crun, or leave out --runtime"));
  };
  const policy::Process& process = policy.process;
  if (policy.network.mode != policy::NetworkMode::none || !policy.network.host_ports.empty() ||
      !policy.network.published_ports.empty()) {
    return refuse("network.mode", "has its own network stack, which the egress cannot confine");
  }
  if (!process.allow_exec || !process.allow_fork || hasExecutableRules(policy))
    return refuse("process", "cannot enforce rules on programs and processes");
  if (policy.resources.threads) return refuse("resources.threads", "reports no new threads");
  if (policy.audit.processes) return refuse("audit.processes", "reports no system calls");
  if (learn) return refuse("--learn", "reports no system calls");
  const auto limited = std::ranges::find_if(
      policy.filesystem.tmpfs, [](const policy::Tmpfs& one) { return one.access != policy::TmpfsAccess::rw; });
  if (limited != policy.filesystem.tmpfs.end())
    return refuse("filesystem.tmpfs: " + limited->path, "has no Landlock, on which its access rests");
  if (!policy.isolation.apparmor_profile.empty() || !policy.isolation.selinux_label.empty())
    return refuse("isolation", "applies no AppArmor profile and no SELinux label");
  return {};
}

/// Everything that is weaker, for the message of a refusal.
std::string_view losses(Runtime runtime) {
  return runtime == Runtime::runsc ? "no Landlock, no self-test, no argument rules of the system-call filter, no "
                                     "reports of blocked system calls; the program is uid 0 inside"
                                   : "system calls that are blocked by name are not reported, and a critical one does "
                                     "not end the sandbox; the program is uid 0 inside";
}

/// Entries of the new /proc that are masked: all that the plan neither shows nor covers, and those it covers where
/// runtimes refuse a mount.
std::vector<std::string> maskedProc(const HostFacts& host, const Plan& plan) {
  std::vector<std::string> masked{"/proc/version", "/proc/sys/kernel/random/boot_id"};
  for (const Step& step : plan.steps) {
    const auto* proc = std::get_if<MountProc>(&step);
    if (proc == nullptr || !proc->mask) continue;
    for (const std::string& name : host.runtime.proc_entries) {
      if (std::ranges::find(proc->shown, name) == proc->shown.end()) masked.push_back("/proc/" + name);
    }
  }
  return masked;
}

/// For gVisor: takes out what only caisson's pid 1 applies.
void planWithoutInit(Plan& plan) {
  plan.landlock = {};
  plan.self_test = false;
  plan.task_limits.reset();
  plan.watched.reset();
  plan.layers["landlock"] = "missing: gVisor has none";
  plan.layers.erase("landlock_scoping");
  plan.layers["self_test"] = "missing";
  plan.layers["seccomp"] += ", by name only, in gVisor";
  plan.layers["seccomp_notify"] = "missing";
  plan.layers["secret_watch"] = "missing";
  plan.warnings.emplace_back("runsc: no Landlock, no self-test, and system calls are filtered by name only");
  plan.warnings.emplace_back("runsc: blocked system calls are not reported");
  plan.warnings.emplace_back("runsc: secret files that appear in the workspace meanwhile are not hidden");
}

}  // namespace

std::string_view runtimeName(Runtime runtime) {
  switch (runtime) {
    case Runtime::caisson: return "caisson";
    case Runtime::runc: return "runc";
    case Runtime::crun: return "crun";
    case Runtime::runsc: return "runsc";
  }
  return "";
}

Result<void> refuseRuntime(const policy::Policy& policy, std::string_view what) {
  if (policy.isolation.runtime == Runtime::caisson) return {};
  return fail(plainError(Stage::policy, "plan", "isolation.runtime",
                         std::string(what) + " cannot use " + std::string(runtimeName(policy.isolation.runtime)) +
                             ": only `caisson run` starts an OCI runtime",
                         "leave out --runtime (isolation.runtime), or use `caisson run`"));
}

Result<void> checkRuntime(const policy::Policy& policy, const HostFacts& host, bool learn) {
  const Runtime runtime = policy.isolation.runtime;
  if (runtime == Runtime::caisson) return {};
  if (auto checked = checkPolicy(policy); !checked) return checked;
  if (runtime == Runtime::runsc) {
    if (auto checked = checkWithoutInit(policy, learn); !checked) return checked;
  }
  if (!mayMiss(policy, policy::OptionalLayer::runtime)) {
    return fail(runtimeError(runtime, "isolation.runtime", "is weaker than caisson: " + std::string(losses(runtime)),
                             "accept that with --allow-weaker runtime (isolation.may_be_missing), or leave out "
                             "--runtime"));
  }
  if (!host.runtime.path.empty()) return {};
  return fail(plainError(Stage::host, "plan", runtimeName(runtime), host.runtime.why_not, host.runtime.hint));
}

void becomeRuntimeUser(const policy::Policy& policy, Plan& plan) {
  plan.identity.inside_uid = plan.identity.inside_gid = 0;
  if (policy.isolation.user == policy::InsideUser::root) return;
  plan.layers["user"] = "root inside, without capabilities: OCI runtimes need it";
  plan.warnings.push_back(std::string(runtimeName(policy.isolation.runtime)) +
                          ": the program is uid 0 of the sandbox, without capabilities, and not sandbox (1000)");
}

void leaveRoomForRuntime(const policy::Policy& policy, Plan& plan) {
  if (policy.isolation.runtime == Runtime::caisson || !plan.cgroup) return;
  const bool gvisor = policy.isolation.runtime == Runtime::runsc;
  const std::uint64_t memory = gvisor ? kGvisorMemory : kRuntimeMemory;
  if (plan.cgroup->memory) *plan.cgroup->memory += memory;
  if (gvisor && plan.cgroup->pids) *plan.cgroup->pids += kGvisorTasks;
  // The runtime's threads would count too: the limit of the container's user namespace holds instead.
  if (!gvisor) plan.cgroup->pids.reset();
  plan.layers["cgroup"] += "; " + std::to_string(memory / policy::kMiB) + " MiB more for the runtime" +
                           (gvisor ? "" : ", processes limited by the user namespace");
}

void planRuntime(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const Runtime runtime = policy.isolation.runtime;
  const std::string name(runtimeName(runtime));
  plan.runtime = {.kind = runtime,
                  .path = host.runtime.path,
                  .masked_proc = maskedProc(host, plan),
                  .system = host.system_directories};
  // One user namespace inside that of the runtime.
  for (Step& step : plan.steps) {
    auto* quota = std::get_if<SetKernelQuota>(&step);
    if (quota != nullptr && quota->name == "max_user_namespaces") quota->value = 1;
  }
  plan.layers["runtime"] = name + " (" + host.runtime.path + ")";
  plan.layers["proc"] = "by " + name + ": /proc/version and boot_id are empty";
  if (runtime == Runtime::runsc) return planWithoutInit(plan);
  plan.layers["seccomp"] += "; by name in " + name + ", all rules in the program's own filter";
  plan.layers["seccomp_notify"] = "only calls that are blocked for their arguments";
  plan.warnings.push_back(name + ": system calls that are blocked by name are not reported");
}

}  // namespace caisson::plan
