// The calls that a filter refuses, while somebody listens: each is graded, answered and put on record, and the worst
// end the sandbox. What that means is the listener's to say: a single run's pid 1, or everything in a session.
#pragma once

#include <functional>
#include <optional>

#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/listener.h"
#include "supervise/observer.h"
#include "supervise/violations.h"

namespace caisson::supervise {

class Refusals {
 public:
  using Clock = std::chrono::steady_clock;
  struct Response {
    std::function<void()> end;                     ///< ends the sandbox
    std::function<void(const Violation&)> record;  ///< puts one on record; after the end of what tried it
  };

  Refusals(const plan::Plan& plan, Response response) : violations_(plan), response_(std::move(response)) {}

  void listen(sys::Fd listener) { listener_ = Listener(std::move(listener)); }
  /// In a run that is watched: calls that the filter allows and only shows go to `observer`, and then go on.
  void show(Observer& observer) { observer_ = &observer; }
  /// For poll, or -1. To be asked before each poll.
  [[nodiscard]] int descriptor();
  /// When to poll again at the latest, if a flood is being slowed down.
  [[nodiscard]] std::optional<Clock::time_point> resumeAt() const { return listener_.resumeAt(); }
  /// After poll. An attempt that ends the sandbox is not answered: its thread waits in the kernel until it is killed.
  void onEvents(short events);
  /// The sandbox is being ended, for whatever reason: nothing is graded or answered any more.
  void stop() { stopped_ = true; }

  [[nodiscard]] const std::optional<Escape>& escape() const { return violations_.escape(); }
  /// Moves what was refused into the result.
  void report(RunResult& result);

 private:
  Listener listener_;
  Violations violations_;
  Response response_;
  Observer* observer_ = nullptr;
  bool stopped_ = false;
};

}  // namespace caisson::supervise
