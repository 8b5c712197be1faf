#include "supervise/command_exit.h"

#include <signal.h>
#include <sys/wait.h>

#include "supervise/explain_failure.h"
#include "supervise/syscalls/denials.h"
#include "supervise/workspace/changes.h"

namespace caisson::supervise {

bool ranIntoFileSize(const CommandExit& exit) {
  if (!exit.wait_status) return false;
  const int status = *exit.wait_status;
  return WIFEXITED(status) ? WEXITSTATUS(status) == 128 + SIGXFSZ : WTERMSIG(status) == SIGXFSZ;
}

namespace {

/// The kernel enforces a CPU limit slightly before the exact value is reached.
constexpr double kCpuLimitTolerance = 0.95;

const char* callOf(const CommandExit& exit) { return exit.in_session ? "session exec" : "run"; }

void endedForLimit(Limit limit, int signal, RunResult& result) {
  result.outcome = OutcomeKind::limit;
  result.limit = limit;
  result.signal = signal;
}

/// The limit that a program hit before it failed by itself: its exit status stays in the result.
Limit limitMet(const CommandExit& exit, const plan::Plan& plan) {
  const int status = *exit.wait_status;
  const bool exited = WIFEXITED(status);
  const int code = exited ? WEXITSTATUS(status) : 0;
  if (exited && code == 0) return Limit::none;
  if (ranIntoFileSize(exit)) {
    // Where the disk quota is enforced by polling, it also limits the size of each file.
    const bool quota = plan.disk && (plan.disk->bytes || !plan.disk->directories.empty()) && !plan.max_file_size;
    return quota ? Limit::disk : Limit::file_size;
  }
  return exit.met;
}

void classifySignal(const plan::Plan& plan, RunResult& result) {
  const double cpu_ms = result.usage.user_cpu_ms + result.usage.system_cpu_ms;
  const bool by_cpu_limit = result.signal == SIGXCPU || result.signal == SIGKILL;
  if (plan.cpu_seconds && cpu_ms >= *plan.cpu_seconds * 1e3 * kCpuLimitTolerance && by_cpu_limit) {
    result.outcome = OutcomeKind::limit;
    result.limit = Limit::cpu;
  } else if (result.signal == SIGSYS) {
    addForeignArchitectureDenial(result);
  }
}

void classifyStatus(const CommandExit& exit, const plan::Plan& plan, RunResult& result) {
  const int status = *exit.wait_status;
  result.limit = limitMet(exit, plan);
  result.outcome = WIFEXITED(status) ? OutcomeKind::exited : OutcomeKind::signaled;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (result.limit != Limit::none) {
    result.outcome = OutcomeKind::limit;
  } else if (WIFSIGNALED(status)) {
    classifySignal(plan, result);
  }
}

/// classify() for a command whose first process left no exit status.
void classifyLost(const CommandExit& exit, const plan::Plan& plan, RunResult& result) {
  if (!exit.killed && !exit.in_session) {
    return setupFailed(plainError(Stage::supervise, "wait", "pid 1 of the sandbox", "it exited without a report",
                                  "the host may be out of memory; see the kernel's log"),
                       plan, result);
  }
  result.outcome = OutcomeKind::signaled;
  result.signal = SIGKILL;
  if (!exit.in_session) return;
  result.notices.emplace_back("the session's sandbox ended while the command ran" +
                              (exit.reason.empty() ? std::string() : ": " + exit.reason));
}

void classifySiblingEscape(const CommandExit& exit, const plan::Plan& plan, RunResult& result) {
  result.outcome = OutcomeKind::denied;
  result.error = plainError(Stage::supervise, callOf(exit), plan.command.front(),
                            "killed: another command of the session tried to escape",
                            "`caisson session ps` and `caisson audit show` tell which");
}

void classifyLimit(const CommandExit& exit, RunResult& result) {
  endedForLimit(exit.limit, SIGKILL, result);
  if (!exit.in_session) return;
  if (!exit.reason.empty()) result.notices.push_back(exit.reason);
  if (exit.limit != Limit::cpu && !exit.alone) result.notices.emplace_back("every process of the session was killed");
}

}  // namespace

void setupFailed(Error error, const plan::Plan& plan, RunResult& result) {
  explainFailure(error, plan);
  if (error.stage != Stage::exec) result.layers.clear();  // none of them was in force
  result.outcome = OutcomeKind::setup_failed;
  result.error = std::move(error);
}

void classifyEscape(std::string_view call, const std::string& program, RunResult& result) {
  result.outcome = OutcomeKind::denied;
  result.limit = Limit::none;
  result.error = plainError(Stage::supervise, call, program, "ended by caisson: " + result.escape->reason,
                            "if the program is to be trusted with such attempts, see syscalls.critical and "
                            "syscalls.high in `caisson policy explain`");
}

void classify(CommandExit exit, const plan::Plan& plan, RunResult& result) {
  if (exit.failure) return setupFailed(std::move(*exit.failure), plan, result);
  if (result.escape) return classifyEscape(callOf(exit), plan.command.front(), result);
  const bool by_force = exit.killed || !exit.wait_status || WIFSIGNALED(*exit.wait_status);
  if (exit.out_of_memory && by_force) return endedForLimit(Limit::memory, SIGKILL, result);
  switch (exit.ended_by) {
    case EndedBy::setup_timeout:
      return setupFailed(
          plainError(Stage::launch, "exec", plan.command.front(),
                     "the command's process did not start its program in time",
                     "another command of the session may have stopped it; `caisson session ps` lists them"),
          plan, result);
    case EndedBy::sibling_escape: return classifySiblingEscape(exit, plan, result);
    case EndedBy::timeout: return endedForLimit(Limit::time, 0, result);
    case EndedBy::limit: return classifyLimit(exit, result);
    case EndedBy::client: result.outcome = OutcomeKind::cancelled; return;
    case EndedBy::itself:
    case EndedBy::sandbox: break;
  }
  if (!exit.wait_status) return classifyLost(exit, plan, result);
  classifyStatus(exit, plan, result);
}

}  // namespace caisson::supervise
