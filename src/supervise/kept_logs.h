// Keeps what a payload wrote to its write-only directories (`access = "wo"`), which the sandbox's end would remove. The
// payload cannot read it back; the owner can.
#pragma once

#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct KeptLogs {
  std::string path;      ///< the directory below CAISSON_HOME/logs; empty: there was nothing to keep
  bool complete = true;  ///< false: files were left out: too many, too large, or not readable
};

/// Copies the regular files below `directory` (O_PATH is enough), at most `max_bytes` in total, to
/// CAISSON_HOME/logs/NAME. Follows no link. Keeps the newest runs only.
Result<KeptLogs> keepLogs(int directory, const std::string& name, std::uint64_t max_bytes);

}  // namespace caisson::supervise
