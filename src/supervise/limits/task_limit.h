// Limits processes and threads apart: `process.max_processes` together with `resources.threads`.
//
// The kernel counts both together and enforces the sum. Each limit alone is enforced here: the filter reports every
// fork and clone (plan/observation.h), and the caller waits for the decision. Counting reads /proc for every task, so
// it is done only when the last count and what was allowed since then may reach the limit, and at most a sixth of the
// time is used for it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/processes/process_tree.h"
#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

/// One limit: the last count, and tasks that were allowed but may not exist yet.
class TaskLedger {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TaskLedger(std::uint64_t limit) : limit_(limit) {}

  /// Whether the thread `caller` may create a task. `count` returns how many there are.
  bool allows(pid_t caller, Clock::time_point now, const std::function<std::uint64_t()>& count);
  /// How long to leave further callers waiting: a multiple of the time that was spent on counting.
  Clock::duration takePause() { return std::exchange(pause_, {}); }

 private:
  struct Granted {
    pid_t caller;
    Clock::time_point at;
  };
  std::uint64_t limit_;
  std::uint64_t counted_ = 0, granted_since_ = 0;
  std::optional<Clock::time_point> valid_until_;
  Clock::time_point refused_until_;
  std::vector<Granted> unseen_;  ///< the caller has not made another call, so its task may be missing in a count
  Clock::duration pause_{};
};

class TaskLimit {
 public:
  /// `plan` has task_limits; `init` is the sandbox's pid 1.
  TaskLimit(const plan::Plan& plan, pid_t init);

  /// Whether this fork or clone, which the filter allows, may continue. False if it creates one process or thread too
  /// many; it is then counted as denied. Decided from the kernel's copy of the arguments.
  bool allows(const Attempt& attempt);

  /// As TaskLedger::takePause, for the listener.
  std::chrono::steady_clock::duration takePause() { return processes_.takePause() + threads_.takePause(); }

  /// Denied calls by limit, for a result.
  [[nodiscard]] std::vector<Denial> denials() const;
  [[nodiscard]] std::uint64_t denied() const { return denied_processes_ + denied_threads_; }

 private:
  TaskLedger processes_, threads_;
  ProcessTree tree_;
  std::uint64_t denied_processes_ = 0, denied_threads_ = 0;
};

}  // namespace caisson::supervise
