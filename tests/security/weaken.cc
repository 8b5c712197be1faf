#include "security/weaken.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "base/syscall_names.h"
#include "host/facts.h"
#include "plan/syscalls.h"
#include "supervise/streams/handed_streams.h"
#include "supervise/supervise.h"

namespace caisson::test {
namespace {

using plan::Plan;

template <class StepType>
void removeSteps(
    Plan& plan, const std::function<bool(const StepType&)>& unwanted = [](const StepType&) { return true; }) {
  std::erase_if(plan.steps, [&](const plan::Step& step) {
    const auto* found = std::get_if<StepType>(&step);
    return found != nullptr && unwanted(*found);
  });
}

/// Uses the host's root instead of a private one: everything the user can see is visible.
void useHostRoot(Plan& plan) {
  plan.own_root = false;
  plan.steps.clear();
  plan.landlock = {};
  plan.working_directory = "/";
  plan.namespaces.mount = false;
}

void allowCall(Plan& plan, const std::string& call) {
  const std::optional<int> number = syscallNumber(call);
  if (!plan.syscalls || !number) return;
  std::erase_if(plan.syscalls->rules, [&](const plan::SyscallRule& rule) { return rule.number == *number; });
  plan.syscalls->rules.push_back({*number, {}, plan::kAllow});
}

/// A denylist that compares all 64 bits of an ioctl request, of which the kernel reads 32 (CVE-2019-10063).
void compareWholeRequest(Plan& plan) {
  for (plan::SyscallRule& rule : plan.syscalls->rules) {
    if (rule.number != *syscallNumber("ioctl")) continue;
    rule.otherwise = plan::kAllow;
    for (plan::Branch& branch : rule.branches) {
      branch.tests.push_back({1, plan::ArgumentTest::Half::high, plan::ArgumentTest::Kind::equal, 0xffffffff, 0});
    }
  }
}

/// Makes every mount executable, as if no executable list had been given.
void makeExecutable(Plan& plan) {
  for (plan::Step& step : plan.steps) {
    if (auto* bind = std::get_if<plan::Bind>(&step); bind != nullptr && !bind->devices) bind->executable = true;
    if (auto* tmpfs = std::get_if<plan::MountTmpfs>(&step)) tmpfs->executable = true;
    if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) overlay->executable = true;
  }
}

/// Mounts the system's program directory over the emptied one.
void showPrograms(Plan& plan) {
  const plan::Bind programs{.source = "/usr/bin", .target = "/usr/bin", .type = plan::SourceType::directory};
  plan.steps.insert(plan.steps.end() - 1, programs);
}

/// Removes the limits on processes and memory: rlimits, cgroup and supervisor.
void liftLimits(Plan& plan) {
  plan.rlimits.clear();
  plan.cgroup.reset();
  plan.memory_bytes = plan.max_tasks = 0;
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  if (plan.task_limits) plan.task_limits = plan::TaskLimits{.processes = kAny, .threads = kAny};
  plan.max_file_size.reset();
}

/// Uses the workspace itself instead of an overlay.
void writeThrough(Plan& plan) {
  for (plan::Step& step : plan.steps) {
    const auto* overlay = std::get_if<plan::MountOverlay>(&step);
    if (overlay == nullptr) continue;
    const plan::Bind direct{
        .source = overlay->lower, .target = overlay->target, .writable = true, .type = plan::SourceType::directory};
    step = direct;
  }
}

/// Mounts whatever has a checked name by now.
void forgetIdentities(Plan& plan) {
  for (plan::Step& step : plan.steps) {
    if (auto* bind = std::get_if<plan::Bind>(&step)) bind->opened = {};
    if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) overlay->opened = {};
  }
  for (plan::LandlockRule& rule : plan.landlock.rules) rule.opened = {};
}

/// Lets a run use the cache of the workspace's sessions.
void shareCaches(Plan& plan) {
  constexpr std::string_view kOwn = "run-";
  for (plan::Step& step : plan.steps) {
    auto* directory = std::get_if<plan::MountTmpfs>(&step);
    if (directory != nullptr && directory->cache.starts_with(kOwn))
      directory->cache.replace(0, kOwn.size(), "session-");
  }
}

struct Weakness {
  const char* name;
  void (*apply)(Plan& plan);
};

constexpr Weakness kWeaknesses[] = {
    {"nothing", [](Plan&) {}},
    {"seccomp", [](Plan& plan) { plan.syscalls.reset(); }},
    {"architecture-check", [](Plan& plan) { plan.syscalls->check_architecture = false; }},
    {"request-mask", compareWholeRequest},
    {"landlock", [](Plan& plan) { plan.landlock = {}; }},
    // A kernel without nf_tables: one listener per permitted port.
    {"packet-filter",
     [](Plan& plan) {
       if (plan.egress) plan.egress->use_packet_filter = false;
     }},
    {"egress-rules",
     [](Plan& plan) {
       if (!plan.egress) return;
       plan.egress->network.allowed_hosts = {"*"};
       plan.egress->network.denied_hosts.clear();
       plan.egress->network.allowed_ports = {"1-65535", "22"};
     }},
    // The addresses that egress blocks, opened for the names of verify/fake_internet.h.
    {"egress-private",
     [](Plan& plan) {
       if (!plan.egress) return;
       for (const char* host : {"site", "inner", "ten", "mixed", "flip"}) {
         plan.egress->network.private_hosts.push_back(std::string(host) + ".verify.example");
       }
     }},
    {"egress-limits",
     [](Plan& plan) {
       if (!plan.egress) return;
       plan.egress->network.dns_queries_per_minute = 100'000;
       plan.egress->network.max_connections = 100'000;
     }},
    {"egress-server-name",
     [](Plan& plan) {
       if (plan.egress) plan.egress->network.allow_missing_server_name = true;
     }},
    // The network namespace is the boundary; the egress is the only way through it.
    {"network-namespace",
     [](Plan& plan) {
       plan.namespaces.network = plan.loopback = false;
       plan.egress.reset();
     }},
    // A ruleset that lets the host's root through.
    {"landlock-root",
     [](Plan& plan) { plan.landlock.rules.push_back({.path = "/", .access = plan.landlock.handled_fs}); }},
    {"landlock-scoping", [](Plan& plan) { plan.landlock.scoped = 0; }},
    {"capabilities", [](Plan& plan) { plan.drop_capabilities = false; }},
    {"no-new-privileges", [](Plan& plan) { plan.no_new_privileges = false; }},
    {"self-test", [](Plan& plan) { plan.self_test = false; }},
    {"separate-user",
     [](Plan& plan) {
       plan.identity.uid_helper.clear();
       plan.identity.outside_uid = ::getuid();
       plan.identity.outside_gid = ::getgid();
     }},
    {"hidden-init", [](Plan& plan) { plan.hardening.hide_init = false; }},
    {"closed-descriptors", [](Plan& plan) { plan.hardening.close_descriptors = false; }},
    {"new-session", [](Plan& plan) { plan.hardening.new_session = false; }},
    {"new-keyring", [](Plan& plan) { plan.hardening.new_keyring = false; }},
    {"hidden-processes", [](Plan& plan) { plan.hardening.hide_processes = false; }},
    {"guarded-links", [](Plan& plan) { plan.hardening.guard_links = false; }},
    {"file-identity", forgetIdentities},
    {"reported-violations", [](Plan& plan) { plan.hardening.report_violations = false; }},
    {"masks",
     [](Plan& plan) {
       removeSteps<plan::MaskPath>(plan);
       for (plan::Step& step : plan.steps) {
         if (auto* proc = std::get_if<plan::MountProc>(&step)) proc->mask = false;
       }
     }},
    {"bound-proc",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* proc = std::get_if<plan::MountProc>(&step)) proc->protect_bound = false;
       }
     }},
    {"proc-values", [](Plan& plan) { removeSteps<plan::CoverFile>(plan); }},
    {"read-only-proc",
     [](Plan& plan) { removeSteps<plan::Bind>(plan, [](const plan::Bind& bind) { return bind.inside; }); }},
    {"read-only-root", [](Plan& plan) { removeSteps<plan::ReadOnlyRoot>(plan); }},
    {"read-only-workspace",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* bind = std::get_if<plan::Bind>(&step); bind != nullptr && bind->target == "/workspace")
           bind->writable = true;
       }
     }},
    {"read-only-paths",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* bind = std::get_if<plan::Bind>(&step); bind != nullptr && bind->target.starts_with("/tmp/"))
           bind->writable = true;
       }
     }},
    {"whiteouts",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) overlay->whiteouts.clear();
       }
     }},
    {"noexec", makeExecutable},
    {"one-cache", shareCaches},
    {"programs", showPrograms},
    {"own-root", useHostRoot},
    {"pid-namespace", [](Plan& plan) { plan.namespaces.pid = false; }},
    {"network-namespace", [](Plan& plan) { plan.namespaces.network = plan.loopback = false; }},
    {"ipc-namespace", [](Plan& plan) { plan.namespaces.ipc = false; }},
    {"uts-namespace", [](Plan& plan) { plan.namespaces.uts = false; }},
    {"cgroup-namespace", [](Plan& plan) { plan.namespaces.cgroup = false; }},
    {"time-namespace", [](Plan& plan) { plan.namespaces.time = false; }},
    {"limits", [](Plan& plan) { plan.rlimits.clear(); }},  // also the raised limit of pid 1, which depends on them
    {"cgroup", [](Plan& plan) { plan.cgroup.reset(); }},
    {"kernel-quotas", [](Plan& plan) { removeSteps<plan::SetKernelQuota>(plan); }},
    {"pty-limit",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* devpts = std::get_if<plan::MountDevpts>(&step)) devpts->most = 0;
       }
     }},
    {"all-limits", liftLimits},
    {"time-limit", [](Plan& plan) { plan.wall_seconds.reset(); }},
    {"tmpfs-limits",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* tmpfs = std::get_if<plan::MountTmpfs>(&step)) tmpfs->bytes = 256ULL << 20U;
       }
     }},
    {"tmpfs-inodes",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* tmpfs = std::get_if<plan::MountTmpfs>(&step)) tmpfs->inodes = 1'000'000;
       }
     }},
    {"disk-quota",
     [](Plan& plan) {
       plan.disk.reset();
       plan.max_file_size.reset();
       std::erase_if(plan.rlimits, [](const plan::ResourceLimit& limit) { return limit.name == "fsize"; });
       for (plan::Step& step : plan.steps) {
         if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) overlay->bytes = 1ULL << 30U;
       }
     }},
    {"cpu-limit",
     [](Plan& plan) {
       plan.cpu_seconds.reset();
       std::erase_if(plan.rlimits, [](const plan::ResourceLimit& limit) { return limit.name == "cpu"; });
     }},
    {"sandbox-user", [](Plan& plan) { plan.identity.inside_uid = plan.identity.inside_gid = 0; }},
    {"read-only-system",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* bind = std::get_if<plan::Bind>(&step); bind != nullptr && bind->target == "/usr")
           bind->writable = true;
       }
     }},
    {"hidden-root-home",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* made = std::get_if<plan::MakeDirectory>(&step); made != nullptr && made->target == "/root")
           made->mode = 0755;
       }
     }},
    {"loopback", [](Plan& plan) { plan.loopback = false; }},
    {"overlay", writeThrough},
    {"program", [](Plan& plan) { plan.command = {"/bin/false"}; }},
};

}  // namespace

bool weaken(Plan& plan, const std::string& name) {
  if (name.starts_with("allow:")) {
    allowCall(plan, name.substr(6));
    return true;
  }
  if (name.starts_with("show:")) {
    const plan::Bind shown{.source = name.substr(5), .target = name.substr(5), .type = plan::SourceType::file};
    plan.steps.insert(plan.steps.end() - 1, shown);
    return true;
  }
  if (name == "clean-environment") {
    for (char** entry = environ; *entry != nullptr; ++entry) plan.environment.emplace_back(*entry);
    return true;
  }
  for (const Weakness& weakness : kWeaknesses) {
    if (name != weakness.name) continue;
    weakness.apply(plan);
    return true;
  }
  return false;
}

/// The plan that caisson would execute, as data that can be weakened.
Result<plan::Plan> planToWeaken(const Request& request) {
  const policy::Policy& policy = request.policy.model();
  plan::HostFacts facts = host::collectFacts(policy);
  facts.passed = supervise::inspectPassed(policy.process.pass_descriptors);
  auto plan = plan::build(policy, facts, {request.command, request.interactive});
  if (!plan) return fail(plan.error());
  if (plan->builtin_syscalls) {
    // The same rules as data: single rules of the compiled form cannot be changed.
    auto filter = plan::filterForFull(policy, {});
    if (!filter) return fail(filter.error());
    plan->syscalls = std::move(*filter);
    plan->builtin_syscalls = false;
  }
  return plan;
}

}  // namespace caisson::test
