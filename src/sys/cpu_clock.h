// CPU time of a process and of every process it starts later, counted by the kernel.
//
// A perf task-clock event that children inherit: the count includes children that were killed, that nobody waited for,
// or that cannot be seen in /proc. One gap: the kernel drops the event from a process that executes a file it may not
// read, so callers compare the count with what /proc shows.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

class CpuClock {
 public:
  /// Counts from now on. Open it before `pid` forks: existing children are not counted. The first one on an idle
  /// machine takes about 10 ms, the next ones 15 us.
  static Result<CpuClock> open(pid_t pid);

  [[nodiscard]] std::chrono::microseconds used() const;

 private:
  explicit CpuClock(Fd event) : event_(std::move(event)) {}

  Fd event_;
};

}  // namespace caisson::sys
