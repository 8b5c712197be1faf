// Running sandboxes, according to the log: created, not destroyed, and their supervisor still runs.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::audit {

struct LiveSandbox {
  std::string id;
  pid_t supervisor = 0;
  sys::Fd pidfd;  ///< of the supervisor, since the pid may be reused
};

/// Reads the whole log. Pids are reused: a process is taken for the supervisor if it belongs to this user and either
/// started before the event or runs this same program (the clock may have been set forward meanwhile).
Result<std::vector<LiveSandbox>> liveSandboxes(const std::string& log_directory);

}  // namespace caisson::audit
