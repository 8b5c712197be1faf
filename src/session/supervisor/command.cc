#include "session/supervisor/command.h"

#include <signal.h>

#include <algorithm>
#include <ctime>

#include "session/store/background_files.h"
#include "supervise/limits/limit_watch.h"

namespace caisson::session {
namespace {

void addUsage(const InitReply& exited, Usage& usage) {
  usage.user_cpu_ms = static_cast<double>(exited.user_us) / 1e3;
  usage.system_cpu_ms = static_cast<double>(exited.system_us) / 1e3;
  usage.peak_memory_bytes = static_cast<std::uint64_t>(exited.peak_kib) * 1024;
  usage.read_bytes = static_cast<std::uint64_t>(exited.in_blocks) * 512;
  usage.written_bytes = static_cast<std::uint64_t>(exited.out_blocks) * 512;
}

/// Raises the usage to what the command's cgroup counted, which includes processes that were not waited for.
void addCounted(const sys::CgroupUsage& counted, Usage& usage) {
  if (counted.cpu_user_usec && counted.cpu_system_usec) {
    usage.user_cpu_ms = std::max(usage.user_cpu_ms, static_cast<double>(*counted.cpu_user_usec) / 1e3);
    usage.system_cpu_ms = std::max(usage.system_cpu_ms, static_cast<double>(*counted.cpu_system_usec) / 1e3);
  }
  usage.peak_memory_bytes = std::max(usage.peak_memory_bytes, counted.memory_peak.value_or(0));
}

}  // namespace

RunResult resultOf(const Command& command, const std::string& session) {
  RunResult result;
  result.sandbox_id = session;
  result.layers = command.plan->layers;
  result.warnings = command.plan->warnings;
  // What the sandbox does not show is the same for each of its commands.
  result.notices = command.number == 1 ? command.plan->allNotices() : command.plan->notices;
  if (!command.options.notice.empty()) result.notices.push_back(command.options.notice);
  if (command.monitor_error != 0) {
    result.layers["seccomp_notify"] = "missing: " + errnoName(command.monitor_error);
    result.warnings.emplace_back(
        "blocked system calls are not reported: a filter around caisson listens already, and the kernel has room for "
        "one listener");
  }
  result.usage.wall_ms = std::chrono::duration<double, std::milli>(Command::Clock::now() - command.began).count();
  if (command.exited) addUsage(*command.exited, result.usage);
  addCounted(command.counted, result.usage);
  if (command.runner->monitor()) command.runner->monitor()->report(result);
  supervise::CommandExit exit = command.runner->exit();
  exit.in_session = true;
  const bool counted = command.runner->monitor() && command.runner->monitor()->deniedTasks() > 0;  // and reported above
  if (counted || command.denied_forks > 0) exit.met = Limit::processes;
  if (!counted && command.denied_forks > 0) result.denials.push_back(supervise::deniedForks(command.denied_forks));
  if (command.exited) exit.wait_status = command.exited->status;
  classify(std::move(exit), *command.plan, result);
  return result;
}

EndRecord endRecordOf(const Command& command, const RunResult& result) {
  EndRecord record;
  record.status = command.exited ? command.exited->status : SIGKILL;
  record.outcome = static_cast<std::uint32_t>(result.outcome);
  record.limit = static_cast<std::uint16_t>(result.limit);
  const bool with_sandbox = !command.exited && command.runner->exit().ended_by == supervise::EndedBy::sandbox;
  record.wall_ms = with_sandbox ? -result.usage.wall_ms : result.usage.wall_ms;
  record.user_ms = result.usage.user_cpu_ms;
  record.system_ms = result.usage.system_cpu_ms;
  record.peak_bytes = result.usage.peak_memory_bytes;
  record.ended = std::time(nullptr);
  for (int stream = 0; stream < 2; ++stream) record.dropped[stream] = command.logs[stream].dropped;
  return record;
}

}  // namespace caisson::session
