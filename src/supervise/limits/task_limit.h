// Limits processes and threads apart: `process.max_processes` together with `resources.threads`.
//
// The kernel counts both together and enforces the sum. Each limit alone is enforced here: the filter reports every
// fork and clone (plan/observation.h), and the caller waits until it is counted. Threads that fork at the same moment
// may exceed a limit by a few; the sum holds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/processes/process_tree.h"
#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

class TaskLimit {
 public:
  /// `plan` has task_limits; `init` is the sandbox's pid 1.
  TaskLimit(const plan::Plan& plan, pid_t init);

  /// Whether this call, which the filter allows, may go on: false if it creates a process or thread too many. Decided
  /// from the kernel's copy of the arguments.
  bool allows(const Attempt& attempt);

  /// Denied calls by limit, for a result.
  [[nodiscard]] std::vector<Denial> denials() const;
  [[nodiscard]] std::uint64_t denied() const { return denied_processes_ + denied_threads_; }

 private:
  plan::TaskLimits limits_;
  ProcessTree tree_;
  std::uint64_t denied_processes_ = 0, denied_threads_ = 0;
};

}  // namespace caisson::supervise
