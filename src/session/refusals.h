// The calls that a command's filter refuses, while somebody waits for the command: each is graded, answered and put on
// record as in a single run, and the worst end everything in the session.
#pragma once

#include <functional>
#include <optional>

#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/listener.h"
#include "supervise/violations.h"

namespace caisson::session {

class Refusals {
 public:
  using Clock = std::chrono::steady_clock;

  /// `record`: puts one on record.
  Refusals(const plan::Plan& plan, std::function<void(const Violation&)> record)
      : violations_(plan), record_(std::move(record)) {}

  void listen(sys::Fd listener) { listener_ = supervise::Listener(std::move(listener)); }
  /// For poll, or -1. To be asked before each poll.
  [[nodiscard]] int descriptor();
  /// When to poll again at the latest, if a flood is being slowed down.
  [[nodiscard]] std::optional<Clock::time_point> resumeAt() const { return listener_.resumeAt(); }
  /// After poll. Whether everything has to end: then the attempt is not answered, and waits until it is killed.
  [[nodiscard]] bool onEvents(short events);

  [[nodiscard]] bool escape() const { return violations_.escape().has_value(); }
  /// What was refused, in the result; an escape attempt decides its outcome.
  void report(const plan::Plan& plan, RunResult& result);

 private:
  supervise::Listener listener_;
  supervise::Violations violations_;
  std::function<void(const Violation&)> record_;
};

}  // namespace caisson::session
