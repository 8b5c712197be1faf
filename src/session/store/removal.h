// Trees that are removed without the lock of all sessions: renamed under that lock to a name that no operation uses.
//
// The remover holds a lock of the directory, so that clean-ups of other processes leave it alone. The kernel releases
// the lock when the remover dies.
#pragma once

#include <string>

#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

struct Removal {
  bool elsewhere = false;  ///< a live process removes it
  /// Empty where the directory cannot be opened or locked. Then two processes may remove one tree, which is harmless.
  sys::Fd lock;
};

/// Locks the directory `name` in `parent`, without waiting. Call it before the rename that makes it a leftover.
Removal beginRemoval(const sys::RootDir& parent, const std::string& name);

}  // namespace caisson::session
