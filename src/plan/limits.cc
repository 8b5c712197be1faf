#include "plan/limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/format.h"
#include "plan/optional_layers.h"
#include "policy/decode/validate.h"
#include "policy/units.h"

namespace caisson::plan {
namespace {

using policy::OptionalLayer;
using policy::Policy;

/// Which limits the kernel enforces, which the supervisor, and which are not enforced.
std::string describeLimits(const Plan& plan) {
  const bool memory = plan.cgroup && plan.cgroup->memory;
  const bool share = plan.cgroup && plan.cgroup->cpus;
  std::string hard = "open files, file size, cpu time of a process";
  if (plan.namespaces.user || (plan.cgroup && plan.cgroup->pids)) hard = "processes, " + hard;
  if (memory) hard = "memory, " + hard;
  if (share) hard += ", cpu share";
  std::string supervised = "time, output, cpu time of the tree";
  if (!memory) supervised = "memory (looked at every 20 to 50 ms), " + supervised;
  return "kernel-hard: " + hard + "; supervised: " + supervised + (share ? "" : "; not limited: cpu share");
}

constexpr const char* kIoOnV1 =
    "disk limits: cgroup v1 counts reading and direct writing; what is written back later from memory is not held";

Error noIoLimit(const CgroupFacts& found, const HostFacts& host) {
  const bool no_disk = found.io && host.disks.empty();
  return plainError(Stage::host, "plan", "resources.io_*",
                    no_disk ? "the files lie on no disk of their own (tmpfs, overlay, network)"
                            : "no cgroup here can limit disk input and output",
                    no_disk ? "remove the key" : "remove the key, or: " + found.why_not);
}

/// The kernel counts descriptors in flight per user, and refuses to send one if there are more than the sender may have
/// open. So a payload with the caller's user id gets less than the caller's hard limit: other sandboxes of the user
/// send descriptors when they start.
std::uint64_t openFiles(const Policy& policy, const HostFacts& host, Plan& plan) {
  constexpr std::uint64_t kReserve = 1024;  // four messages with as many descriptors as one can hold
  const std::uint64_t wanted = policy.resources.open_files;
  if (plan.identity.outside_uid != host.uid) return wanted;
  const std::uint64_t most = std::max(host.open_files / 2, host.open_files - std::min(host.open_files, kReserve));
  if (wanted <= most) return wanted;
  plan.warnings.push_back(
      format("resources.open_files: {} instead of {}: the hard limit here is {} (`ulimit -Hn`), and "
             "other programs of this user need a part of it",
             most, wanted, host.open_files));
  return most;
}

}  // namespace

std::uint64_t maxTasks(const Policy& policy) {
  return policy.process.max_processes + policy.resources.threads.value_or(0);
}

void planLimits(const Policy& policy, const HostFacts& host, bool interactive, Plan& plan) {
  const policy::Resources& r = policy.resources;
  const auto add = [&](const char* name, int resource, std::uint64_t value) {
    plan.rlimits.push_back({name, resource, value});
  };
  add("nofile", RLIMIT_NOFILE, openFiles(policy, host, plan));
  add("core", RLIMIT_CORE, 1);  // not 0: a core handler program is started for any limit but 1
  add("stack", RLIMIT_STACK, r.stack);
  add("memlock", RLIMIT_MEMLOCK, 64 * policy::kKiB);
  // Half of the kernel's default for a user (819200 bytes): a sandbox's usage counts for its caller, too.
  add("msgqueue", RLIMIT_MSGQUEUE, 409600);
  add("sigpending", RLIMIT_SIGPENDING, 1024);
  // In a separate user namespace the kernel counts this per sandbox: one more for our pid 1. Where a cgroup counts too,
  // its limit is lower, since it also reports how often it was hit.
  if (plan.namespaces.user) add("nproc", RLIMIT_NPROC, maxTasks(policy) + (plan.cgroup ? 2 : 1));
  if (r.cpu_seconds) add("cpu", RLIMIT_CPU, static_cast<std::uint64_t>(std::max(1.0, std::ceil(*r.cpu_seconds))));
  if (policy.filesystem.max_file_size) add("fsize", RLIMIT_FSIZE, *policy.filesystem.max_file_size);

  plan.wall_seconds = policy::effectiveWallSeconds(policy);
  if (plan.wall_seconds == policy::kNoTimeLimit || (interactive && !r.wall_seconds)) plan.wall_seconds.reset();
  plan.cpu_seconds = r.cpu_seconds;
  plan.output_bytes = policy::effectiveOutput(policy);
  plan.cpu_affinity = r.cpu_affinity;
  plan.affinity_required = !r.cpu_affinity.empty();
  const auto wanted = static_cast<std::size_t>(std::ceil(r.cpus));
  if (plan.cpu_affinity.empty() && wanted < host.cpus.size()) {  // so that `nproc` reports it
    plan.cpu_affinity = host.cpus;
    plan.cpu_count = static_cast<std::uint32_t>(wanted);
  }
  plan.time_quantum_seconds = r.time_quantum_seconds;
  plan.memory_bytes = r.memory;
  plan.max_file_size = policy.filesystem.max_file_size;
  plan.max_tasks = maxTasks(policy);
  plan.layers["limits"] = describeLimits(plan);
}

Result<void> planCgroup(const Policy& policy, const HostFacts& host, Plan& plan) {
  const CgroupFacts& found = host.cgroup;
  CgroupPlan cgroup{.at_birth = found.kind == "v2"};
  std::string held;
  std::string missing;
  const auto decide = [&](bool usable, std::string_view what) {
    std::string& list = usable ? held : missing;
    list += (list.empty() ? "" : ", ") + std::string(what);
    return usable;
  };
  if (decide(found.memory, "memory")) {
    cgroup.memory = policy.resources.memory;
    cgroup.swap = policy.resources.swap;
    if (policy.resources.memory_reservation > 0) cgroup.memory_low = policy.resources.memory_reservation;
  }
  if (policy.resources.memory_reservation > 0 && (!found.memory || found.kind == "v1"))
    plan.warnings.emplace_back("resources.memory_reservation: only cgroup v2 can reserve memory");
  if (decide(found.pids, "processes")) cgroup.pids = maxTasks(policy) + 1;  // plus our pid 1
  if (policy.resources.cpus != policy::kAllCpus && decide(found.cpu, "cpu share")) cgroup.cpus = policy.resources.cpus;
  if (found.cpuset) cgroup.cpuset = policy.resources.cpu_affinity;
  const policy::Resources& r = policy.resources;
  if (limitsIo(r)) {
    // No default requests this, so a policy that does must not run without it.
    if (!found.io || host.disks.empty()) return fail(noIoLimit(found, host));
    decide(true, "disk input and output");
    cgroup.io_disks = host.disks;
    cgroup.io_rbps = r.io_read_bytes_per_second;
    cgroup.io_wbps = r.io_write_bytes_per_second;
    cgroup.io_riops = r.io_read_operations_per_second;
    cgroup.io_wiops = r.io_write_operations_per_second;
    if (found.kind == "v1") plan.warnings.push_back(kIoOnV1);
  }
  if (!missing.empty() && !mayMiss(policy, OptionalLayer::cgroup)) {
    return fail(plainError(Stage::host, "plan", "cgroup", "no cgroup here can limit " + missing, found.why_not));
  }
  if (!held.empty()) plan.cgroup = cgroup;
  plan.layers["cgroup"] = held.empty() ? "missing" : found.kind + ": " + held;
  if (!missing.empty()) {
    if (!held.empty()) plan.layers["cgroup"] += "; missing: " + missing;
    plan.warnings.push_back("no cgroup limits for " + missing + ": see `caisson doctor`");
  }
  return {};
}

}  // namespace caisson::plan
