// The states of a run: Created, Initialized, Running, Monitoring, one of Completed, Timeout and Error, Cleanup. Each is
// entered once and in this order; a run that fails early skips to Error.
#pragma once

#include <chrono>
#include <functional>

#include "caisson/run.h"

namespace caisson::supervise {

class Lifecycle {
 public:
  using Clock = std::chrono::steady_clock;
  /// Called for every state that is entered, for the audit log.
  using Listener = std::function<void(const StateChange&)>;

  /// Writes to `steps`, which it does not own.
  Lifecycle(std::vector<StateChange>& steps, Clock::time_point start) : steps_(steps), start_(start) {}
  /// Sets the listener.
  void setListener(Listener listener) { listener_ = std::move(listener); }

  /// Enters `state` and, up to Monitoring, the states before it that were skipped. Does nothing if `state` or a later
  /// one was entered.
  void reach(RunState state);
  /// Enters Completed, Timeout or Error, according to the result.
  void end(const RunResult& result);

 private:
  /// Appends the state with its time and calls the listener.
  void enter(RunState state);

  std::vector<StateChange>& steps_;
  Clock::time_point start_;
  Listener listener_;
};

}  // namespace caisson::supervise
