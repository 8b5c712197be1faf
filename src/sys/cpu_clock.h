// CPU time of a process and of every process that it starts later, counted by the kernel.
//
// A perf task-clock event that children inherit: it counts children that were killed, never waited for, or invisible in
// /proc. One gap: the kernel drops the event when a process executes a file that it may not read, so callers compare
// the count with /proc.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

class CpuClock {
 public:
  /// Counts from now on. Open it before `pid` forks: existing children are not counted. The first event on an idle
  /// machine takes about 10 ms, later ones 15 us.
  static Result<CpuClock> open(pid_t pid);

  /// CPU time since open(), user and system; 0 if it cannot be read.
  [[nodiscard]] std::chrono::microseconds used() const;

 private:
  explicit CpuClock(Fd event) : event_(std::move(event)) {}

  Fd event_;
};

}  // namespace caisson::sys
