#include <algorithm>
#include <limits>

#include "plan/build_sandbox.h"
#include "plan/credentials.h"
#include "plan/denied_paths.h"
#include "plan/environment.h"
#include "plan/executables.h"
#include "plan/filesystem.h"
#include "plan/image_root.h"
#include "plan/kernel_quotas.h"
#include "plan/landlock.h"
#include "plan/landlock_tier.h"
#include "plan/limits.h"
#include "plan/named_paths.h"
#include "plan/network.h"
#include "plan/observation.h"
#include "plan/oci_profile.h"
#include "plan/optional_layers.h"
#include "plan/plan.h"
#include "plan/quota.h"
#include "plan/runtime.h"
#include "plan/syscalls.h"
#include "plan/workspace.h"
#include "policy/decode/validate.h"
#include "policy/rules/command.h"
#include "policy/units.h"

namespace caisson::plan {
namespace {

using policy::Level;
using policy::OptionalLayer;
using policy::Policy;
using policy::Tier;

Policy withMemoryInBytes(const Policy& policy, const HostFacts& host) {
  Policy result = policy;
  const std::uint64_t bytes = policy::resolveShare(policy.resources.memory, host.memory);
  // A share that stays one: the host's memory is unknown. Uses the default limit then.
  result.resources.memory = policy::isShare(bytes) ? policy::Resources().memory : bytes;
  return result;
}

Result<void> checkCommand(const Policy& policy, const Command& command) {
  const auto refusal = policy::refuseCommand(policy.commands, command.argv);
  if (!refusal) return {};
  return fail(withCode(plainError(Stage::policy, "run", refusal->rule, refusal->reason, refusal->hint),
                       ErrorCode::command_denied));
}

Result<void> checkKernel(const HostFacts& host) {
  if (host.kernel_major > 6 || (host.kernel_major == 6 && host.kernel_minor >= 1)) return {};
  return fail(plainError(Stage::host, "plan",
                         "Linux " + std::to_string(host.kernel_major) + "." + std::to_string(host.kernel_minor),
                         "kernels before 6.1 lack what the isolation rests on (complete Landlock, overlay and mount "
                         "interfaces in user namespaces)",
                         "use Linux 6.1 or newer; `caisson doctor` lists what is missing"));
}

/// Sets the payload's ids. A root caller's payload is never root: it gets an id that owns nothing on this host.
void planIdentity(const HostFacts& host, Plan& plan) {
  const bool root = host.may_map_other_ids;
  plan.identity.parent_writes_maps = root;
  plan.identity.change_user = root;
  plan.identity.maps_files = root && host.may_map_mounts;
  plan.identity.broker_uid = root ? host.payload_id + host.broker_offset : 0;
  plan.identity.outside_uid = root ? host.payload_id : host.uid;
  plan.identity.outside_gid = root ? host.payload_id : host.gid;
}

/// Why root inside has a single id although the host may have given the caller more; "" if nothing prevents them.
std::string obstacleToMoreIds(const Policy& policy, const HostFacts& host, const Plan& plan) {
  if (policy.isolation.runtime != policy::Runtime::caisson) return "an OCI runtime has one";
  if (!hasOtherRoot(policy)) return "only another root than the host's has files of other ids";
  if (host.may_map_other_ids) return "the caller is root";
  if (plan.identity.usesHelpers()) return "isolation.separate_user";
  // The host's own files must stay the caller's: it could neither change nor remove those of other ids.
  if (policy.filesystem.workspace.mode == policy::WorkspaceMode::rw) return "the workspace is written directly";
  if (!policy.filesystem.read_write.empty()) return "filesystem.read_write";
  return host.subordinate.why_not;
}

/// Maps the caller's subordinate ids, with which owners and ids really change.
void planMoreIds(const Policy& policy, const HostFacts& host, Plan& plan) {
  if (const std::string obstacle = obstacleToMoreIds(policy, host, plan); !obstacle.empty()) {
    plan.layers["user"] = "root inside, a single id, without capabilities (" + obstacle + ")";
    return;
  }
  plan.identity.more_uids = host.subordinate.uids;
  plan.identity.more_gids = host.subordinate.gids;
  plan.identity.uid_helper = host.subordinate.uid_helper;
  plan.identity.gid_helper = host.subordinate.gid_helper;
  plan.kept_capabilities = kIdCapabilities;
  plan.layers["user"] = "root inside, with " + std::to_string(host.subordinate.uids.count) + " subordinate ids";
}

/// Makes the payload uid 0 of its user namespace. On the host it is who it would be otherwise.
Result<void> planRootUser(const Policy& policy, const HostFacts& host, Plan& plan) {
  if (policy.isolation.user != policy::InsideUser::root) return {};
  if (!plan.namespaces.user) {
    return fail(plainError(Stage::plan, "plan", "isolation.user",
                           "the payload can be root only in a user namespace, which this level or tier has not",
                           "use --level full"));
  }
  plan.identity.inside_uid = plan.identity.inside_gid = 0;
  planMoreIds(policy, host, plan);
  plan.warnings.emplace_back("the program is root inside the sandbox (isolation.user)");
  return {};
}

/// Why an ordinary caller's payload must keep the caller's own id although the policy asks for another; "" if nothing
/// prevents it.
std::string obstacleToSeparateUser(const Policy& policy, const HostFacts& host) {
  if (policy.isolation.level != Level::full || policy.isolation.tier != Tier::namespaces)
    return "only level full has another one";
  if (policy.filesystem.workspace.mode != policy::WorkspaceMode::none && !currentDirectoryIsTooBroad(policy, host))
    return "files of the workspace are the caller's (use --workspace :none; a session always has one)";
  if (!policy.filesystem.read_write.empty()) return "files below filesystem.read_write are the caller's";
  if (host.cgroup.kind == "v1") return "the kernel lets no other user's process into the caller's cgroup v1";
  return host.subordinate.why_not;
}

/// Gives an ordinary caller's payload a subordinate id, if the policy asks for it; else adds a warning why not.
void planSeparateUser(const Policy& policy, const HostFacts& host, Plan& plan) {
  if (!policy.isolation.separate_user || host.may_map_other_ids) return;
  if (const std::string obstacle = obstacleToSeparateUser(policy, host); !obstacle.empty()) {
    plan.warnings.push_back("isolation.separate_user: the payload has the caller's user id: " + obstacle);
    return;
  }
  plan.identity.outside_uid = host.subordinate.uid;
  plan.identity.outside_gid = host.subordinate.gid;
  plan.identity.uid_helper = host.subordinate.uid_helper;
  plan.identity.gid_helper = host.subordinate.gid_helper;
}

void planNamespaces(const Policy& policy, const HostFacts& host, Plan& plan) {
  const bool full = plan.level == Level::full;
  plan.namespaces = {.user = true,
                     .pid = true,
                     .mount = true,
                     .network = true,
                     .ipc = true,
                     .uts = true,
                     .cgroup = full,
                     .time = full};
  plan.loopback = true;
  plan.may_keep_hostname = mayMiss(policy, OptionalLayer::hostname);
  plan.require_time_namespace = full && !mayMiss(policy, OptionalLayer::time_namespace);
  plan.layers["namespaces"] = full ? "user pid mount network ipc uts cgroup" : "user pid mount network ipc uts";
  if (full) plan.layers["time_namespace"] = "on";
  planIdentity(host, plan);
  planSeparateUser(policy, host, plan);
  if (host.may_map_other_ids && !host.may_map_mounts) {
    plan.warnings.emplace_back(
        "root without CAP_SYS_ADMIN: the program has another user id and files keep their owner: it reads what "
        "everyone may read, and changes no file of root's");
  }
}

void warnOfGroups(const HostFacts& host, Plan& plan) {
  const bool keeps_groups = !host.may_map_other_ids && !plan.identity.usesHelpers();
  if (keeps_groups && host.supplementary_groups > 0) {
    plan.warnings.push_back(std::to_string(host.supplementary_groups) +
                            " supplementary groups of the caller cannot be dropped without privilege; files that only "
                            "such a group may read stay readable where the sandbox shows them");
  }
}

Result<void> planLandlock(const Policy& policy, const HostFacts& host, Plan& plan) {
  const bool rests_on_it = plan.host_view || !plan.own_root;  // there Landlock is the boundary, not a second layer
  if (policy.process.isolate_commands) {
    if (host.landlock_abi < 6) {
      return fail(plainError(Stage::host, "plan", "process.isolate_commands",
                             "it rests on Landlock scoping, which the kernel does not have",
                             "use Linux 6.12 or newer with lsm=landlock,... , or set it to false"));
    }
    plan.isolate_commands = true;
    plan.layers["command_isolation"] = "a Landlock domain for each command of a session";
  }
  if (host.landlock_abi < 1) {
    if (rests_on_it) {
      return fail(plainError(Stage::host, "plan", "Landlock", "the kernel has none, or it is not in its lsm= list",
                             "boot with lsm=landlock,... ; level full does not rest on it and can be used without"));
    }
    const auto limited = std::ranges::find_if(
        policy.filesystem.tmpfs, [](const policy::Tmpfs& mount) { return mount.access != policy::TmpfsAccess::rw; });
    if (limited != policy.filesystem.tmpfs.end()) {
      return fail(plainError(Stage::host, "plan", "filesystem.tmpfs: " + limited->path,
                             "its access rests on Landlock, which the kernel does not have",
                             "boot with lsm=landlock,... , or give it access rw"));
    }
    plan.layers["landlock"] = "missing";
    plan.warnings.emplace_back("Landlock is missing on this kernel");
    plan.notices.push_back(plan.warnings.back());  // as well: no built-in profile lists it as optional
    return {};
  }
  plan.landlock = !rests_on_it ? landlockForOwnRoot(plan, host.landlock_abi)
                               : landlockForHostRoot(policy, host, plan, host.landlock_abi);
  plan.layers["landlock"] =
      "ABI " + std::to_string(host.landlock_abi) + ", " + std::to_string(plan.landlock.rules.size()) + " rules";
  if (plan.landlock.scoped != 0) {
    plan.layers["landlock_scoping"] = "abstract sockets and signals";
  } else if (mayMiss(policy, OptionalLayer::landlock_scoping)) {
    plan.layers["landlock_scoping"] = "missing (needs Linux 6.12)";
    plan.warnings.push_back("Landlock scoping is missing on this kernel (needs Linux 6.12)");
  } else {
    return fail(plainError(Stage::host, "plan", "Landlock scoping",
                           "the kernel's Landlock ABI is " + std::to_string(host.landlock_abi) + ", scoping needs 6",
                           "use Linux 6.12 or newer, or list it in isolation.may_be_missing"));
  }
  return {};
}

/// Makes the filter report files and, without a network, hosts. Allows nothing more.
void reportForLearning(const Policy& policy, SyscallFilter& filter) {
  observeFiles(filter);
  if (policy.network.mode == policy::NetworkMode::none) observeNetwork(filter);
}

/// Makes the filter report what the policy records or limits. The built-in filter reports no allowed call, so this one
/// is adapted.
Result<void> planObservation(const Policy& policy, bool learn, Plan& plan) {
  const bool records = policy.audit.enabled && policy.audit.processes;
  const bool limits = policy.resources.threads.has_value();
  if (!records && !limits && !learn) return {};
  if (plan.builtin_syscalls) {
    auto filter = filterForFull(policy, {});
    if (!filter) return fail(filter.error());
    plan.syscalls = std::move(*filter);
    plan.builtin_syscalls = false;
  }
  if (records) {
    observeProcesses(*plan.syscalls);
    plan.log_processes = true;
    plan.layers["process_log"] = "on";
  }
  if (limits) {
    observeTasks(*plan.syscalls);
    plan.task_limits = {.processes = policy.process.max_processes, .threads = *policy.resources.threads};
  }
  if (learn) reportForLearning(policy, *plan.syscalls);
  return {};
}

/// Further descriptors of the caller. Without Landlock, a payload could reopen a file for writing that it may only
/// read.
Result<void> planDescriptors(const Policy& policy, const HostFacts& host, Plan& plan) {
  if (policy.process.pass_descriptors.empty()) return {};
  const auto refuse = [](const std::string& why, std::string_view hint) {
    return fail(plainError(Stage::plan, "plan", "process.pass_descriptors", why, hint));
  };
  if (!host.passed)
    return refuse("only a run passes descriptors of its caller", "remove the key, or use `caisson run`");
  for (const PassedDescriptor& one : *host.passed) {
    const std::string number = std::to_string(one.number);
    if (!one.why_not.empty()) {
      return refuse("descriptor " + number + " " + one.why_not,
                    "open it for caisson, for example: caisson run ... " + number + "<FILE");
    }
    if (one.readable_file && plan.level != Level::none && plan.landlock.abi == 0) {
      return refuse("descriptor " + number + " is a file that could be reopened for writing without Landlock",
                    "pass a pipe instead");
    }
    plan.passed.push_back(one);
    plan.layers["descriptors"] += (plan.passed.size() > 1 ? " " : "0 1 2 ") + number;
  }
  return {};
}

/// Narrows the filter to the policy's profile in OCI form.
Result<void> planOciProfile(const Policy& policy, const HostFacts& host, Plan& plan) {
  const std::string& path = policy.syscalls.oci_profile;
  if (path.empty()) return {};
  if (!host.why_no_oci_profile.empty()) {
    return fail(plainError(Stage::host, "plan", "syscalls.oci_profile",
                           "\"" + path + "\" cannot be read: " + host.why_no_oci_profile,
                           "give the path of the profile"));
  }
  const OciTarget target{host.kernel_major, host.kernel_minor, !policy.process.allow_exec};
  if (auto applied = applyOciProfile(host.oci_profile, path, target, *plan.syscalls); !applied) return applied;
  plan.layers["seccomp"] = "allowlist, " + std::to_string(plan.syscalls->allowed()) + " calls, narrowed by " + path;
  if (plan.level != Level::full) plan.layers["seccomp"] = "denylist, narrowed by " + path;
  return {};
}

Result<void> checkSelinux(const Policy& policy, const HostFacts& host) {
  if (policy.isolation.selinux_label.empty() || host.selinux) return {};
  return fail(plainError(Stage::host, "plan", "isolation.selinux_label",
                         "the policy names a SELinux label, and SELinux is not active on this host",
                         "remove the key, or boot with SELinux"));
}

Result<SyscallFilter> filterFor(const Policy& policy, const Plan& plan) {
  if (plan.tier == Tier::landlock) return filterForLandlockTier(policy);
  return plan.level == Level::full ? filterForFull(policy, {}) : filterForProcess(policy);
}

Result<void> planSyscalls(const Policy& policy, const HostFacts& host, bool learn, Plan& plan) {
  std::size_t allowed = builtinAllowed();
  if (plan.level == Level::full && plan.tier == Tier::namespaces && usesBuiltinFilter(policy)) {
    plan.builtin_syscalls = true;
  } else {
    auto filter = filterFor(policy, plan);
    if (!filter) return fail(filter.error());
    plan.syscalls = std::move(*filter);
    if (plan.identity.hasMoreIds()) makeIdCalls(*plan.syscalls);
    allowed = plan.syscalls->allowed();
  }
  const bool denylist = plan.syscalls && plan.syscalls->unlisted == kAllow;
  plan.layers["seccomp"] = denylist ? "denylist" : "allowlist, " + std::to_string(allowed) + " calls";
  if (auto narrowed = planOciProfile(policy, host, plan); !narrowed) return narrowed;
  if (auto observed = planObservation(policy, learn, plan); !observed) return observed;
  plan.single_exec = !policy.process.allow_exec;
  plan.no_fork = !policy.process.allow_fork;
  plan.severities.critical = policy.syscalls.critical;
  plan.severities.high = policy.syscalls.high;
  plan.severities.high_limit = policy.syscalls.high_limit;
  plan.severities.high_window_seconds = policy.syscalls.high_window_seconds;
  plan.layers["seccomp_notify"] = "on";
  return {};
}

Result<void> planNone(const Policy& policy, const HostFacts& host, bool interactive, Plan& plan) {
  if (!policy.filesystem.denied.empty()) {
    return fail(plainError(Stage::plan, "plan", "filesystem.denied",
                           "level none cannot deny \"" + policy.filesystem.denied.front() +
                               "\": the program has all the rights of the caller",
                           "use level process or full"));
  }
  if (!policy.syscalls.oci_profile.empty()) {
    return fail(plainError(Stage::plan, "plan", "syscalls.oci_profile", "level none filters no system calls",
                           "use level process or full"));
  }
  if (auto planned = planDescriptors(policy, host, plan); !planned) return planned;
  plan.drop_capabilities = false;
  plan.no_new_privileges = false;
  plan.self_test = false;
  plan.working_directory = host.current_directory.path;
  plan.environment = planEnvironment(policy, host, plan, interactive);
  planLimits(policy, host, interactive, plan);
  plan.rlimits.clear();
  plan.memory_bytes = plan.max_tasks = 0;
  plan.layers.erase("limits");
  plan.layers["isolation"] = "none: time-out and output limits only";
  plan.warnings.push_back("level none: the program runs with all the rights of the caller");
  return {};
}

Result<void> chooseDirectory(const Policy& policy, Plan& plan) {
  if (policy.working_directory.empty()) return {};
  auto directory = directoryInside(plan, policy.working_directory);
  if (!directory) return fail(directory.error());
  plan.working_directory = *std::move(directory);
  return {};
}

/// An error if anything is mounted or created in a cache: other sandboxes may use it at the same time and put links
/// into it, also while this one mounts there.
Result<void> checkCaches(const Plan& plan) {
  for (const Step& cache : plan.steps) {
    const auto* directory = std::get_if<MountTmpfs>(&cache);
    if (directory == nullptr || directory->cache.empty()) continue;
    for (const Step& step : plan.steps) {
      const std::string target = std::visit(
          [](const auto& one) {
            if constexpr (requires { one.target; }) return one.target;
            return std::string();
          },
          step);
      if (target == directory->target || !below(target, directory->target)) continue;
      return fail(plainError(Stage::plan, "plan", target,
                             "it is in the cache " + directory->target + ", which other sandboxes change too",
                             "name a path outside of the cache, or drop `cache` from its filesystem.tmpfs entry"));
    }
  }
  return {};
}

/// Plans who the payload is and which files it sees.
Result<void> planTree(const Policy& policy, const HostFacts& host, Plan& plan) {
  if (plan.tier == Tier::landlock) {
    planIdentity(host, plan);
    planSeparateUser(policy, host, plan);
  } else {
    planNamespaces(policy, host, plan);
  }
  if (auto planned = planRootUser(policy, host, plan); !planned) return planned;
  if (policy.isolation.runtime != policy::Runtime::caisson) becomeRuntimeUser(policy, plan);
  if (plan.tier == Tier::landlock) return planLandlockTier(policy, host, plan);
  warnOfGroups(host, plan);
  if (plan.level != Level::full) return planHostRoot(policy, host, plan);
  return hasOtherRoot(policy) ? planImageRoot(policy, host, plan) : planOwnRoot(policy, host, plan);
}

}  // namespace

Result<void> setCommand(const Policy& policy, const HostFacts& host, const Command& command, Plan& plan) {
  if (auto checked = checkCommand(policy, command); !checked) return fail(checked.error());
  if (command.argv.empty()) {
    return fail(plainError(Stage::usage, "run", "", "no command given", "caisson run -- COMMAND ARGUMENT..."));
  }
  if (auto checked = checkExecutables(policy, host, command); !checked) return fail(checked.error());
  plan.command = command.argv;
  return {};
}

Result<Plan> build(const Policy& policy, const HostFacts& host, const Command& command) {
  Plan chosen;  // a command that the rules refuse is refused before anything about the host
  if (auto set = setCommand(policy, host, command, chosen); !set) return fail(set.error());
  auto plan = buildSandbox(policy, host, command.interactive, command.learn);
  if (plan) plan->command = std::move(chosen.command);
  return plan;
}

Result<Plan> buildSandbox(const Policy& policy, const HostFacts& host, bool interactive, bool learn) {
  if (policy::isShare(policy.resources.memory)) {
    return buildSandbox(withMemoryInBytes(policy, host), host, interactive, learn);
  }
  Plan plan;
  if (auto checked = checkExecutableLists(policy, host); !checked) return fail(checked.error());
  if (auto checked = checkOtherRoot(policy, host); !checked) return fail(checked.error());
  if (auto checked = checkRuntime(policy, host, learn); !checked) return fail(checked.error());
  plan.level = policy.isolation.level;
  plan.tier = policy.isolation.tier;
  plan.hostname = policy.isolation.hostname;
  plan.apparmor_profile = policy.isolation.apparmor_profile;
  plan.selinux_label = policy.isolation.selinux_label;
  if (auto checked = checkSelinux(policy, host); !checked) return fail(checked.error());
  plan.self_test = policy.isolation.self_test;
  plan.layers["audit"] = policy.audit.enabled ? "hash chain" : "off";
  if (!policy.audit.enabled) plan.warnings.push_back("no audit: the policy switches it off (audit.enabled)");
  if (auto checked = checkKernel(host); !checked) return fail(checked.error());
  if (plan.level == Level::none) {
    if (auto checked = planNetwork(policy, plan); !checked) return fail(checked.error());
    if (auto planned = planNone(policy, host, interactive, plan); !planned) return fail(planned.error());
    if (auto chosen = chooseDirectory(policy, plan); !chosen) return fail(chosen.error());
    return plan;
  }
  if (!host.why_no_other_id.empty()) {
    return fail(plainError(Stage::host, "plan", "uid 0", host.why_no_other_id,
                           "run caisson as an ordinary user (containers: --user 1000, runAsUser: 1000), or with "
                           "CAP_SETUID and CAP_SETGID"));
  }
  Result<void> planned = planTree(policy, host, plan);
  if (planned) planned = chooseDirectory(policy, plan);
  if (planned) planned = checkOwnState(policy, host, plan);
  if (planned) planned = checkCaches(plan);
  if (planned) planned = planNetwork(policy, plan);
  if (planned) planKernelQuotas(host, plan);
  if (planned) planned = checkCredentials(policy, host, plan);
  if (planned) planned = planLandlock(policy, host, plan);
  if (planned) planned = planDescriptors(policy, host, plan);
  if (planned) planned = planCgroup(policy, host, plan);
  if (planned) leaveRoomForRuntime(policy, plan);
  if (planned) planned = planSyscalls(policy, host, learn, plan);
  if (!planned) return fail(planned.error());
  planLimits(policy, host, interactive, plan);
  if (auto quota = planQuota(policy, host, plan); !quota) return fail(quota.error());
  plan.environment = planEnvironment(policy, host, plan, interactive);
  plan.layers["no_new_privs"] = "on";
  plan.layers["capabilities"] = plan.kept_capabilities == 0 ? "none" : std::string(kIdCapabilityNames);
  plan.layers["identity"] = plan.identity.outside_uid == host.uid ? "shared with caller" : "separate user id";
  plan.layers["level"] = plan.tier == Tier::landlock ? "landlock tier" : plan.level == Level::full ? "full" : "process";
  plan.layers["self_test"] = plan.self_test ? "on" : "off";
  if (!plan.self_test) plan.warnings.push_back("the self-test before the payload starts is switched off");
  if (policy.isolation.runtime != policy::Runtime::caisson) planRuntime(policy, host, plan);
  return plan;
}

}  // namespace caisson::plan
