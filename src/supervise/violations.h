// The book of refused system calls: how often, how grave, and when it is enough (SPEC S2, S3).
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "caisson/run.h"
#include "plan/plan.h"
#include "policy/severity.h"
#include "supervise/listener.h"

namespace caisson::supervise {

struct Verdict {
  int error = 0;               ///< the answer to the call
  bool end = false;            ///< the sandbox ends now
  bool end_process = false;    ///< only the process that tried
  const Violation* entry{};    ///< where the attempt is written down; valid until the next call
  bool worth_logging = false;  ///< the 1st, 2nd, 4th, 8th ... of its kind: a flood leaves a short trace
};

/// Pure: the kernel's side is Listener. Memory is bounded whatever the payload does.
class Violations {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Violations(const plan::Plan& plan) : plan_(plan) {}

  /// Writes an attempt down and says what to do. `program` is asked only for attempts that get an entry of their own.
  Verdict judge(const Attempt& attempt, Time now, const std::function<std::string()>& program);

  /// Whether the filter leaves the result of this call to the supervisor (plan::kAnswer).
  [[nodiscard]] bool isAnswered(const Attempt& attempt);

  /// Moves the entries into the result, and one denial per call with them.
  void report(RunResult& result);

  [[nodiscard]] const std::optional<Escape>& escape() const { return escape_; }

 private:
  [[nodiscard]] std::uint32_t evaluate(const Attempt& attempt);
  [[nodiscard]] int answerTo(const Attempt& attempt);
  Violation& entryFor(const Attempt& attempt, const std::function<std::string()>& program);
  [[nodiscard]] bool tooMany(Time now);

  const plan::Plan& plan_;
  std::vector<sock_filter> program_;  ///< compiled again at the first attempt, where it is not the built-in one
  std::vector<Violation> entries_;
  std::deque<Time> high_;
  std::optional<Escape> escape_;
};

}  // namespace caisson::supervise
