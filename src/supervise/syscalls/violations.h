// The log of blocked system calls: counts, severity, and when to kill the sandbox.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "caisson/run.h"
#include "plan/plan.h"
#include "policy/rules/severity.h"
#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

struct Verdict {
  int error = 0;               ///< the errno for the caller
  bool end = false;            ///< kill the sandbox now
  bool end_process = false;    ///< kill only the calling process
  const Violation* entry{};    ///< the entry of the attempt; valid until the next call
  bool worth_logging = false;  ///< the 1st, 2nd, 4th, 8th ... of its kind: a flood leaves a short trace
};

/// The last attempts of severity HIGH in one sandbox. The commands of a session share it: a payload that runs again and
/// again, or leaves processes behind, must not get a new budget with each command.
class HighAttempts {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Counts an attempt; true if there were too many within the window of `table`. Then the count starts again, since
  /// the sandbox is killed and other processes in it must not be blamed as well.
  [[nodiscard]] bool tooMany(Time now, const policy::Syscalls& table);

 private:
  std::deque<Time> times_;
};

/// Pure: Listener is the kernel's side. Memory is bounded.
class Violations {
 public:
  using Time = HighAttempts::Time;

  explicit Violations(const plan::Plan& plan, std::shared_ptr<HighAttempts> high = std::make_shared<HighAttempts>())
      : plan_(plan), high_(std::move(high)) {}

  /// Records an attempt and decides what to do. `program` is called only for attempts that get a new entry.
  Verdict judge(const Attempt& attempt, Time now, const std::function<std::string()>& program);

  /// Whether the filter leaves the result of this call to the supervisor (plan::kAnswer).
  [[nodiscard]] bool isAnswered(const Attempt& attempt);
  /// Whether the supervisor makes this call for the process (plan::kServe).
  [[nodiscard]] bool isServed(const Attempt& attempt);

  /// Moves the entries into the result, and one denial per call with them.
  void report(RunResult& result);

  [[nodiscard]] const std::optional<Escape>& escape() const { return escape_; }

 private:
  /// What the filter returns for this call (SECCOMP_RET_*).
  [[nodiscard]] std::uint32_t evaluate(const Attempt& attempt);
  /// The errno that the filter has for this call; EPERM if it has none.
  [[nodiscard]] int answerTo(const Attempt& attempt);
  /// The entry for attempts like this one, created if needed.
  Violation& entryFor(const Attempt& attempt, const std::function<std::string()>& program);

  const plan::Plan& plan_;
  std::vector<sock_filter> program_;  ///< recompiled at the first attempt, if it is not the built-in one
  std::vector<Violation> entries_;
  std::shared_ptr<HighAttempts> high_;
  std::optional<Escape> escape_;
};

}  // namespace caisson::supervise
