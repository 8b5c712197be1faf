#include "session/supervisor/command.h"

#include <signal.h>
#include <sys/wait.h>

#include <ctime>

#include "session/store/background_files.h"
#include "supervise/changes.h"
#include "supervise/outcome.h"

namespace caisson::session {
namespace {

constexpr const char* kEverythingEnded = "every process of the session was killed";

void addUsage(const InitReply& exited, Usage& usage) {
  usage.user_cpu_ms = static_cast<double>(exited.user_us) / 1e3;
  usage.system_cpu_ms = static_cast<double>(exited.system_us) / 1e3;
  usage.peak_memory_bytes = static_cast<std::uint64_t>(exited.peak_kib) * 1024;
  usage.read_bytes = static_cast<std::uint64_t>(exited.in_blocks) * 512;
  usage.written_bytes = static_cast<std::uint64_t>(exited.out_blocks) * 512;
}

void endedByLimit(const Command& command, RunResult& result) {
  result.outcome = OutcomeKind::limit;
  result.limit = command.limit;
  if (!command.reason.empty()) result.notices.push_back(command.reason);
  if (command.limit != Limit::cpu) result.notices.emplace_back(kEverythingEnded);
}

void endedByItself(const Command& command, RunResult& result) {
  const int status = command.exited->status;
  if (WIFEXITED(status)) {
    result.outcome = OutcomeKind::exited;
    result.exit_code = WEXITSTATUS(status);
    return;
  }
  result.outcome = OutcomeKind::signaled;
  result.signal = WTERMSIG(status);
  if (result.signal == SIGXFSZ) {
    result.outcome = OutcomeKind::limit;
    result.limit = Limit::file_size;
  } else {
    supervise::classifySignal(*command.plan, result);
  }
}

}  // namespace

RunResult classifyCommand(const Command& command, const std::string& session) {
  RunResult result;
  result.sandbox_id = session;
  result.layers = command.plan->layers;
  result.warnings = command.plan->warnings;
  result.notices = command.plan->notices;
  if (!command.options.notice.empty()) result.notices.push_back(command.options.notice);
  if (command.monitor_error != 0) {
    result.layers["seccomp_notify"] = "missing: " + errnoName(command.monitor_error);
    result.warnings.emplace_back(
        "blocked system calls are not reported: a filter around caisson listens already, and the kernel has room for "
        "one listener");
  }
  result.usage.wall_ms = std::chrono::duration<double, std::milli>(Command::Clock::now() - command.began).count();
  if (command.exited) addUsage(*command.exited, result.usage);
  switch (command.ended_by) {
    case EndedBy::setup_timeout:
      result.error = plainError(Stage::launch, "exec", command.options.command.front(),
                                "the command's process did not start its program in time",
                                "another command of the session may have stopped it; `caisson session ps` lists them");
      return result;
    case EndedBy::escape:
      result.outcome = OutcomeKind::denied;
      result.error = plainError(Stage::supervise, "session exec", command.options.command.front(),
                                "killed: another command of the session tried to escape",
                                "`caisson session ps` and `caisson audit show` tell which");
      return result;
    case EndedBy::timeout:
      result.outcome = OutcomeKind::limit;
      result.limit = Limit::time;
      return result;
    case EndedBy::limit: endedByLimit(command, result); return result;
    default: break;
  }
  if (command.failure) {
    result.error = command.failure;
    supervise::explainFailure(*result.error, *command.plan);
    return result;
  }
  if (command.ended_by == EndedBy::client) {
    result.outcome = OutcomeKind::cancelled;
    return result;
  }
  if (!command.exited) {
    result.outcome = OutcomeKind::signaled;
    result.signal = SIGKILL;
    result.notices.emplace_back("the session's sandbox ended while the command ran" +
                                (command.reason.empty() ? std::string() : ": " + command.reason));
    return result;
  }
  endedByItself(command, result);
  return result;
}

EndRecord endRecordOf(const Command& command, const RunResult& result) {
  EndRecord record;
  record.status = command.exited ? command.exited->status : SIGKILL;
  record.outcome = static_cast<std::uint32_t>(result.outcome);
  record.limit = static_cast<std::uint32_t>(result.limit);
  record.wall_ms = result.usage.wall_ms;
  record.user_ms = result.usage.user_cpu_ms;
  record.system_ms = result.usage.system_cpu_ms;
  record.peak_bytes = result.usage.peak_memory_bytes;
  record.ended = std::time(nullptr);
  for (int stream = 0; stream < 2; ++stream) record.dropped[stream] = command.logs[stream].dropped;
  return record;
}

}  // namespace caisson::session
