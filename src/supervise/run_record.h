// A run in the audit log: written before the payload starts, completed when nothing of the sandbox is left.
#pragma once

#include <optional>

#include "audit/log.h"
#include "base/error.h"
#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// For the metrics.
audit::Measures measuresOf(const RunResult& result);

/// Puts on record that the policy's rules refused a command before anything was built. What can't be recorded is a
/// warning: nothing ran.
void recordRefusal(const Request& request, RunResult& result);

class RunRecord {
 public:
  /// Puts on record that this is about to run. An error means that it must not.
  Result<void> begin(const plan::Plan& plan, const Request& request, const std::string& sandbox_id);

  /// The log, for events during the run; null when the policy switches the audit off.
  [[nodiscard]] audit::Log* log() { return log_ ? &*log_ : nullptr; }
  /// The payload is on its way and the caller idle: see to it that what is on record reaches the disk.
  void handOver() {
    if (log_) log_->handOver();
  }
  /// A limit came to 80 % (SPEC R5).
  void limitNear(const std::string& sandbox_id, const std::string& what);
  /// A state that the run entered, if the policy wants these on record.
  void entered(const std::string& sandbox_id, const StateChange& step);
  /// How it ended. What can't be recorded any more is a warning: the run has happened.
  void end(RunResult& result);

 private:
  std::optional<audit::Log> log_;
  bool states_ = false;
};

}  // namespace caisson::supervise
