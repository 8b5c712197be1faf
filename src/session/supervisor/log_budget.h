// Bounds the disk space of the files of a session's background commands, which are outside its disk limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "policy/model.h"
#include "sys/root_dir.h"

namespace caisson::session {

class LogBudget {
 public:
  using Clock = std::chrono::steady_clock;

  /// A quarter of the session's disk limit, at least 1 MiB and at most 256 MiB.
  static std::uint64_t limitOf(const policy::Policy& policy);

  /// `logs`: the session's directory of logs, which must outlive this; measured here.
  LogBudget(const sys::RootDir& logs, std::uint64_t limit);

  /// Returns how many of `bytes` may be appended to a log that has `written` bytes, and counts them. Drops the output
  /// of the oldest ended commands if that is too little. A log stops when it has as many bytes as are left for all
  /// others, so that one flooding command does not take the space of the next ones. Spares commands that ended just
  /// now, unless the log is below 1/64 of the limit and their output is not.
  std::uint64_t takeOutput(std::uint64_t bytes, std::uint64_t written);
  /// Counts the files that describe a new command; false if they do not fit. Drops the output of ended commands for
  /// them, and then the records of the oldest ones.
  bool takeRecord(std::uint64_t bytes);
  /// Counts the files that were written when the command ended.
  void countEnd(std::uint32_t exec);
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  [[nodiscard]] std::uint64_t left() const { return limit_ - std::min(limit_, used_); }
  void measure();
  /// Calls `release`, which returns freed bytes, for ended commands from the oldest on, until `wanted` bytes are left.
  void makeRoom(std::uint64_t wanted,
                const std::function<std::uint64_t(const sys::RootDir& logs, std::uint32_t exec)>& release);

  const sys::RootDir& logs_;
  std::uint64_t limit_, used_ = 0;
  /// For logs below and above their share: a flood must not make us list the files all the time.
  Clock::time_point next_try_[2] = {};
};

}  // namespace caisson::session
