// A run in the audit log: recorded before the payload starts, and when no process of the sandbox is left.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "audit/log.h"
#include "base/error.h"
#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// The parts of a result that the audit log keeps for metrics.
audit::Measures measuresOf(const RunResult& result);

/// Whether the error is a command that the policy's rules deny: the request is valid, so the caller returns a result.
bool isCommandRefusal(const Error& error);
/// The result for such an error.
RunResult refusedResult(const Error& error, std::string sandbox_id);

/// Describes the values that the user typed and that exceed the owner's ceilings; "" if there are none.
std::string valuesAboveCeilings(const policy::Policy& policy);

/// For the log. It refers to `result`, which must have a denial.
audit::Event refusalEvent(const std::vector<std::string>& command, const RunResult& result);

/// Samples signals that caisson passes on: the 1st, 2nd, 4th ... of each number gets an event.
class SignalCounter {
 public:
  std::optional<audit::Event> add(const std::string& sandbox_id, int signal);

 private:
  std::map<int, std::uint64_t> counts_;
};

/// Records that the policy's rules denied a command before anything was built; does nothing if the policy disables the
/// audit log. A failure is a warning: nothing ran.
void recordRefusal(const Request& request, RunResult& result);

class RunRecord {
 public:
  /// Checks the quarantine and records the start. On an error the payload must not start; with Stage::policy it is in
  /// quarantine, which is recorded even if the policy disables the audit log.
  Result<void> begin(const plan::Plan& plan, const Request& request, const std::string& sandbox_id);

  /// The log, for events during the run; null if the policy disables the audit log.
  [[nodiscard]] audit::Log* log() { return log_ ? &*log_ : nullptr; }
  /// Starts the sync of the log to disk. Call when the payload is starting and the caller is idle.
  void handOver() {
    if (log_) log_->handOver();
  }
  /// Records that a limit reached 80 %.
  void limitNear(const std::string& sandbox_id, const std::string& what);
  /// Records that a limit was reached while the program continues.
  void limitReached(const std::string& sandbox_id, Limit limit);
  /// Records what the run changed in its workspace.
  void filesChanged(const std::string& sandbox_id, audit::Fields changes);
  /// Records a signal that caisson received and passed on to the program. A flood is sampled.
  void signalForwarded(const std::string& sandbox_id, int signal);
  /// Records an ordinary event of the payload.
  void note(const std::string& sandbox_id, audit::EventType type, audit::Fields fields);
  /// Records a state that the run entered, if the policy requests that.
  void entered(const std::string& sandbox_id, const StateChange& step);
  /// Records the end. A failure is a warning: the run is over.
  void end(RunResult& result);

 private:
  std::optional<audit::Log> log_;
  SignalCounter signals_;
  bool states_ = false;
};

}  // namespace caisson::supervise
