// Records the programs that a payload starts and the signals that its processes send each other (`audit.processes`).
//
// The filter reports exec and kill and then continues them (plan/observation.h). Counts and signal numbers are
// the kernel's; names of programs are read while the caller waits, and a hostile program can make them wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "audit/event.h"
#include "plan/plan.h"
#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

/// Memory and the number of events are bounded.
class ProcessLog {
 public:
  using Clock = std::chrono::steady_clock;
  using Record = std::function<void(audit::EventType, audit::Fields)>;
  static constexpr std::size_t kMaxKinds = 256;
  static constexpr std::uint64_t kMaxEventsPerSecond = 32;

  explicit ProcessLog(Record record) : record_(std::move(record)) {}

  /// Counts a reported call while its thread waits, and records it if it is the 1st, 2nd, 4th ... of its kind and the
  /// second has room. After kMaxKinds, new kinds are in the totals only; the first of them is recorded as "overflow".
  void note(const Attempt& attempt, const Listener& listener);
  /// Records the totals, if not every call has an event.
  void finish();

  /// One kind of call: what happened, the program, and who did it. For tests; note() fills it.
  struct Kind {
    enum class How : std::uint8_t { exec, signal } how = How::exec;
    std::string program;  ///< the new program; of a signal: its name
    std::string parent;   ///< the program that made the call
    auto operator<=>(const Kind&) const = default;
  };
  /// Counts the call; records the 1st, 2nd, 4th ... of its kind, if hasRoom().
  void add(const Kind& kind, pid_t pid, Clock::time_point now);

 private:
  /// nullopt for a program that does not exist, or a call that is not recorded.
  [[nodiscard]] std::optional<Kind> kindOf(const Attempt& attempt, const Listener& listener) const;
  /// Counts an event; false if there were kMaxEventsPerSecond in this second already.
  [[nodiscard]] bool hasRoom(Clock::time_point now);
  /// Records once that new kinds are only counted from now on: a payload could use up the room with made-up names.
  void noteOverflow();

  Record record_;
  std::map<Kind, std::uint64_t> counts_;
  std::uint64_t execs_ = 0, signals_ = 0, events_ = 0;
  Clock::time_point second_;
  std::uint64_t in_second_ = 0;
  bool overflowed_ = false;        ///< there were more kinds than kMaxKinds
  std::uint64_t finished_at_ = 0;  ///< the sum of calls in the last totals
};

}  // namespace caisson::supervise
