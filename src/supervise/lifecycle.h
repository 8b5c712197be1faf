// The states that a run goes through: Created, Initialized, Running, Monitoring, one of Completed, Timeout and Error,
// Cleanup. Each is entered once and in this order; a run that fails early goes from where it is to Error.
#pragma once

#include <chrono>
#include <functional>

#include "caisson/run.h"

namespace caisson::supervise {

class Lifecycle {
 public:
  using Clock = std::chrono::steady_clock;
  /// Told of every state that is entered, for the record.
  using Listener = std::function<void(const StateChange&)>;

  /// Writes to `steps`, which it does not own.
  Lifecycle(std::vector<StateChange>& steps, Clock::time_point start) : steps_(steps), start_(start) {}
  void tell(Listener listener) { listener_ = std::move(listener); }

  /// Enters `state`, and before it what comes before it on the way to a running program. Later again is no change.
  void reach(RunState state);
  /// Completed, Timeout or Error, as the result says.
  void end(const RunResult& result);

 private:
  void enter(RunState state);

  std::vector<StateChange>& steps_;
  Clock::time_point start_;
  Listener listener_;
};

}  // namespace caisson::supervise
