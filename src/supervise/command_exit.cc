#include "supervise/outcome.h"

#include <signal.h>
#include <sys/wait.h>

#include "supervise/changes.h"
#include "supervise/denials.h"
#include "supervise/limit_watch.h"

namespace caisson::supervise {
namespace {

/// A limit that the kernel holds by itself and that a program met which then gave up: its own exit status stays, and
/// the result says why.
Limit metByItself(int status, const plan::Plan& plan, const LimitWatch& limits) {
  const bool exited = WIFEXITED(status);
  const int code = exited ? WEXITSTATUS(status) : 0;
  if (exited && code == 0) return Limit::none;
  if (code == 128 + SIGXFSZ || (!exited && WTERMSIG(status) == SIGXFSZ)) {
    // Where the disk is only watched no file may grow beyond its limit either.
    const bool quota = plan.disk && plan.disk->bytes && !plan.max_file_size;
    return quota ? Limit::disk : Limit::file_size;
  }
  return limits.met();
}

void endedForLimit(Limit limit, int signal, RunResult& result) {
  result.outcome = OutcomeKind::limit;
  result.limit = limit;
  result.signal = signal;
}

}  // namespace

void setupFailed(Error error, const plan::Plan& plan, RunResult& result) {
  explainFailure(error, plan);
  result.outcome = OutcomeKind::setup_failed;
  result.error = std::move(error);
}

void classifySignal(const plan::Plan& plan, RunResult& result) {
  const double cpu_ms = result.usage.user_cpu_ms + result.usage.system_cpu_ms;
  const bool by_cpu_limit = result.signal == SIGXCPU || result.signal == SIGKILL;
  if (plan.cpu_seconds && cpu_ms >= *plan.cpu_seconds * 1e3 * 0.95 && by_cpu_limit) {
    result.outcome = OutcomeKind::limit;
    result.limit = Limit::cpu;
  } else if (result.signal == SIGSYS) {
    noteUnheardForeignCall(result);
  }
}

void endedForEscape(std::string_view call, const std::string& program, RunResult& result) {
  result.outcome = OutcomeKind::denied;
  result.limit = Limit::none;
  result.error = plainError(Stage::supervise, call, program, "ended by caisson: " + result.escape->reason,
                            "if the program is to be trusted with such attempts, see syscalls.critical and "
                            "syscalls.high in `caisson policy explain`");
}

void classify(Ending ending, const plan::Plan& plan, const LimitWatch& limits, RunResult& result) {
  if (ending.failure) return setupFailed(std::move(*ending.failure), plan, result);
  if (result.escape) return endedForEscape("run", plan.command.front(), result);
  const std::optional<int>& status = ending.wait_status;
  if (limits.ranOutOfMemory() && (!status || WIFSIGNALED(*status) || ending.killed)) {
    return endedForLimit(Limit::memory, SIGKILL, result);
  }
  if (ending.timed_out) return endedForLimit(Limit::time, 0, result);
  if (ending.reached != Limit::none) return endedForLimit(ending.reached, SIGKILL, result);
  if (ending.cancelled) {
    result.outcome = OutcomeKind::cancelled;
    return;
  }
  if (!status) {
    if (!ending.killed) {
      return setupFailed(plainError(Stage::supervise, "wait", "pid 1 of the sandbox", "it ended without a word",
                                    "the host may be out of memory; see the kernel's log"),
                         plan, result);
    }
    result.outcome = OutcomeKind::signaled;
    result.signal = SIGKILL;
    return;
  }
  result.limit = metByItself(*status, plan, limits);
  result.outcome = WIFEXITED(*status) ? OutcomeKind::exited : OutcomeKind::signaled;
  if (WIFEXITED(*status)) result.exit_code = WEXITSTATUS(*status);
  if (WIFSIGNALED(*status)) result.signal = WTERMSIG(*status);
  if (result.limit != Limit::none) {
    result.outcome = OutcomeKind::limit;
  } else if (WIFSIGNALED(*status)) {
    classifySignal(plan, result);
  }
}

}  // namespace caisson::supervise
