// A new upper layer for the workspace of a running sandbox in which no process uses the old one.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace caisson::session {

struct OverlayOptions {
  std::string target;              ///< where the workspace is mounted, inside
  std::string lower, upper, work;  ///< names in the store, in the kernel's format
  bool executable = true;
  uid_t uid = 0;  ///< of the sandbox's user, inside
  gid_t gid = 0;
};

/// Unmounts the workspace's overlay in a running sandbox and mounts one with these layers. `layer`: any layer's
/// directory, opened on the store's mount in the sandbox. A child process enters the sandbox's user and mount
/// namespaces for that; this process does not. Waits at most 10 s; after that (ETIMEDOUT) the child was killed, and the
/// caller has to reap it.
Result<void> remountOverlay(int init_pidfd, int layer, const OverlayOptions& options);

}  // namespace caisson::session
