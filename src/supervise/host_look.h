// What the host has at paths that a payload named, for `--learn`.
//
// A path may lie on a file system that never answers (a dead NFS server, a stuck FUSE program), and a payload can name
// it on purpose. So a separate process looks, and is given up with the path that it got stuck on.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "caisson/run.h"

namespace caisson::supervise {

struct HostLookLimits {
  std::chrono::milliseconds per_path{1000};
  int stuck_paths = 3;  ///< after so many, the rest is not looked at
};

/// Fills in the fields about the host. Returns the paths that gave no answer; those after the last one allowed are
/// among them.
std::vector<std::string> lookAtHost(const std::vector<FileRequest*>& requests, HostLookLimits limits = {});

}  // namespace caisson::supervise
