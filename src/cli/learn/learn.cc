#include "cli/learn/learn.h"

#include <algorithm>
#include <cmath>

#include "base/never_allowed_calls.h"
#include "cli/learn/draft.h"
#include "cli/safe_text.h"
#include "policy/limits.h"
#include "sys/machine.h"

namespace caisson::cli {
namespace {

void proposeSyscalls(Draft& draft, const policy::Syscalls& syscalls, const RunResult& result) {
  std::vector<std::string> added;
  std::vector<std::string> listed;
  for (const Denial& denial : result.denials) {
    if (denial.rule == "syscalls.allow") {
      if (isNeverAllowed(denial.object) || denial.object.find(' ') != std::string::npos) {
        draft.refuse("refused, and no policy allows it: " + safeLine(denial.object));
      } else {
        added.push_back(denial.object);
      }
    } else if (denial.rule == "syscalls.names") {
      listed.push_back(denial.object);
    } else if (denial.rule.starts_with("syscalls:") || denial.rule.starts_with("seccomp:")) {
      draft.refuse("refused, and no policy allows it: " + safeLine(denial.object) + " (" + denial.remedy + ")");
    }
  }
  if (!added.empty()) {
    std::vector<std::string> all = syscalls.allow;
    all.insert(all.end(), added.begin(), added.end());
    draft.set("syscalls.allow", listOf(all), "calls that were answered ENOSYS");
  }
  if (!listed.empty() && syscalls.names) {
    std::vector<std::string> all = *syscalls.names;
    if (syscalls.mode == policy::SyscallMode::allowlist) {
      all.insert(all.end(), listed.begin(), listed.end());
    } else {
      std::erase_if(all, [&](const std::string& name) { return std::ranges::find(listed, name) != listed.end(); });
    }
    draft.set("syscalls.names", listOf(all), "refused: " + listOf(listed));
  }
}

/// Doubles the limit, up to the ceiling; only an owner can raise a limit beyond that.
template <class Number>
void proposeLimit(Draft& draft, const std::string& key, Number now, Number ceiling) {
  if (now >= ceiling)
    return draft.refuse(key + " was met, and is at its ceiling: an owner's configuration may raise it");
  const Number wanted = std::min<Number>(now * 2, ceiling);
  draft.set(key, std::to_string(wanted), "the limit was met");
}

void proposeLimits(Draft& draft, const policy::Policy& policy, const RunResult& result) {
  policy::Ceilings ceilings = policy::ceilingsOf(policy);
  ceilings.memory = policy::resolveShare(ceilings.memory, sys::machineMemory());
  const std::uint64_t memory = policy::resolveShare(policy.resources.memory, sys::machineMemory());
  for (const Denial& denial : result.denials) {
    if (denial.rule == "resources.memory") proposeLimit(draft, denial.rule, memory, ceilings.memory);
    if (denial.rule == "process.max_processes")
      proposeLimit(draft, denial.rule, policy.process.max_processes, ceilings.processes);
    if (denial.rule == "resources.output")
      proposeLimit(draft, denial.rule, policy::effectiveOutput(policy), ceilings.output);
    if (denial.rule == "resources.wall_seconds") {
      proposeLimit<long>(draft, denial.rule, std::lround(std::ceil(policy::effectiveWallSeconds(policy))),
                         std::lround(ceilings.wall_seconds));
    }
    if (denial.rule == "resources.cpu_seconds" && policy.resources.cpu_seconds)
      proposeLimit<long>(draft, denial.rule, std::lround(std::ceil(*policy.resources.cpu_seconds)), 1L << 31);
    if (denial.rule == "filesystem.max_file_size" && policy.filesystem.max_file_size)
      proposeLimit<std::uint64_t>(draft, denial.rule, *policy.filesystem.max_file_size, ~0ULL >> 2);
    if (denial.rule == "filesystem.max_total_size" && policy.filesystem.max_total_size)
      proposeLimit<std::uint64_t>(draft, denial.rule, *policy.filesystem.max_total_size, ~0ULL >> 2);
  }
}

/// Lists the actual usage, so that the user can also narrow the policy.
void tellUsed(Draft& draft, const policy::Policy& policy, const RunResult& result) {
  const Usage& usage = result.usage;
  const auto mib = [](std::uint64_t bytes) { return std::to_string((bytes + policy::kMiB - 1) / policy::kMiB); };
  const auto seconds = [](double ms) {
    return std::to_string(std::lround(std::floor(ms / 1e3))) + "." +
           std::to_string(std::lround(std::floor(ms / 100)) % 10) + " s";
  };
  std::string used = "used: " + mib(usage.peak_memory_bytes) + " MiB of memory (of " +
                     mib(policy::resolveShare(policy.resources.memory, sys::machineMemory())) + "), " +
                     seconds(usage.user_cpu_ms + usage.system_cpu_ms) + " of CPU time, " + seconds(usage.wall_ms) +
                     " in all";
  if (usage.processes_peak) used += ", " + std::to_string(*usage.processes_peak) + " processes at once";
  draft.remark(used);
  if (usage.network_connections > 0) {
    draft.remark("used: " + std::to_string(usage.network_connections) + " connections, " +
                 std::to_string(usage.network_bytes) + " bytes of network");
  }
}

}  // namespace

Proposal proposePolicy(const policy::Policy& policy, const std::string& base, const RunResult& result) {
  Draft draft;
  for (const Denial& denial : result.denials) {
    if (denial.rule == "process.allow_fork" || denial.rule == "process.allow_exec")
      draft.set(denial.rule, "true", "tried to " + denial.operation);
  }
  proposeSyscalls(draft, policy.syscalls, result);
  proposeLimits(draft, policy, result);
  proposeFiles(draft, policy, result);
  proposeHosts(draft, policy.network, result);
  tellUsed(draft, policy, result);
  return draft.finish(base);
}

}  // namespace caisson::cli
