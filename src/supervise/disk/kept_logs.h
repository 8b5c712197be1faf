// Keeps what a payload wrote to its write-only directories (`access = "wo"`), which the sandbox's end would remove. The
// payload cannot read it back; the owner can.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"

namespace caisson::supervise {

struct KeptLogs {
  std::string path;      ///< the directory below CAISSON_HOME/logs; empty: there was nothing to keep
  bool complete = true;  ///< false: something was left out: too many, too large, too deep, unreadable, or not a file
};

/// Copies the regular files below `directory` (O_PATH is enough) to CAISSON_HOME/logs/NAME, or NAME.2 and so on if that
/// exists; in total at most `max_bytes`, and never more than 128 MiB. Follows no link. Then removes all but the newest
/// 20 directories in CAISSON_HOME/logs.
Result<KeptLogs> keepLogs(int directory, const std::string& name, std::uint64_t max_bytes);

/// Says what was kept of write-only directories, and what was lost.
struct KeptLogNotes {
  std::vector<std::string> notices, warnings;
};
/// Keeps all write-only directories of a sandbox that ended. `directory_of` returns a descriptor by the path inside the
/// sandbox, or -1.
KeptLogNotes keepWrittenLogs(const plan::Plan& plan, const std::string& sandbox_id,
                             const std::function<int(std::string_view)>& directory_of);

/// The directories that were kept of a sandbox or session.
std::vector<std::string> keptLogsOf(const std::string& sandbox_id);

}  // namespace caisson::supervise
