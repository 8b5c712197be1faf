// Which sandboxes live, by the log's own word: created, not destroyed, and their caisson still there.
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
  sys::Fd pidfd;  ///< of the supervisor: the number may be somebody else's by the time it is used
};

/// Numbers are used again. A process counts as the one that wrote an event if it was started before that event, or if
/// it is this same program (the clock may have been set forward meanwhile), and if it is this user's.
Result<std::vector<LiveSandbox>> liveSandboxes(const std::string& log_directory);

}  // namespace caisson::audit
