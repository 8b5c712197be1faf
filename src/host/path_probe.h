// Probes host paths that a payload named, for `--learn`.
//
// A path may be on a file system that never answers (a dead NFS server, a stuck FUSE program), and a payload can name
// it on purpose. So a separate process probes, and is abandoned with the path that it hangs on.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "caisson/run.h"

namespace caisson::host {

struct PathProbeLimits {
  std::chrono::milliseconds per_path{1000};
  int stuck_paths = 3;  ///< after this many, the rest is skipped
};

/// Fills in the fields of `requests` that describe the path on the host. Returns the paths without an answer, including
/// those skipped after the last allowed hang.
std::vector<std::string> probePaths(const std::vector<FileRequest*>& requests, PathProbeLimits limits = {});

}  // namespace caisson::host
