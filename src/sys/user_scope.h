// Obtains a cgroup from the user's service manager, for processes in a login session's scope, which belongs to root.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::sys {

/// Whether a manager is available: an ordinary user on cgroup v2 with its bus in the usual place. Cheap.
bool hasUserManager();

/// Moves this process, with all its threads, into a new delegated scope `caisson-<pid>.scope` of the user's systemd.
/// The scope ends with its last process. Takes some 10 ms, 2 s at most (then ETIMEDOUT). Call CgroupBase::find() again
/// afterwards.
Result<void> enterUserScope();

/// The request alone, over the bus at `socket_path`: 1 s at most, and does not wait for the move.
Result<void> requestScope(const std::string& socket_path, const std::string& unit);

}  // namespace caisson::sys
