// A cgroup of our own from the user's service manager: for processes in a login session's scope, which is root's.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::sys {

/// Whether there is a manager to ask: an ordinary user on cgroup v2 with its bus in the usual place. Cheap.
bool hasUserManager();

/// Moves this process, with all its threads, into a new delegated scope `caisson-<pid>.scope` of the user's systemd.
/// The scope ends with its last process. Takes some 10 ms; 1 s at most. After it CgroupBase::find() looks anew.
Result<void> enterUserScope();

/// The same over the bus at `socket_path`; does not wait for the move. For tests.
Result<void> requestScope(const std::string& socket_path, const std::string& unit);

}  // namespace caisson::sys
