#include "supervise/lifecycle.h"

namespace caisson::supervise {
namespace {

constexpr RunState kWayToMonitoring[] = {RunState::created, RunState::initialized, RunState::running,
                                         RunState::monitoring};

}  // namespace

void Lifecycle::enter(RunState state) {
  const double at_ms = std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  steps_.push_back({state, at_ms});
  if (listener_) listener_(steps_.back());
}

void Lifecycle::reach(RunState state) {
  if (!steps_.empty() && steps_.back().state >= state) return;
  for (const RunState before : kWayToMonitoring) {
    if (before >= state || state > RunState::monitoring) break;
    if (steps_.empty() || steps_.back().state < before) enter(before);
  }
  enter(state);
}

void Lifecycle::end(const RunResult& result) {
  const bool timeout = result.outcome == OutcomeKind::limit && result.limit == Limit::time;
  const bool exited = result.outcome == OutcomeKind::exited;
  // A program that exited was running, even if not every message about it was read.
  if (exited || timeout) reach(RunState::monitoring);
  reach(timeout ? RunState::timeout : exited ? RunState::completed : RunState::error);
}

}  // namespace caisson::supervise
