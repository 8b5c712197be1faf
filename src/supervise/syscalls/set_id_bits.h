// chmod for a payload that is root inside: makes the call without its setuid and setgid bits.
//
// Package managers set such modes and fail if they cannot. The bits are never set, on no file: in a directory that the
// host shares they would give other users the caller's rights. A filter cannot change an argument, so the supervisor
// makes the call. The payload controls the path and everything on it; the path is resolved inside its own root, through
// its own mounts, and only objects of this user are changed: it could change each of them itself.
#pragma once

#include <sys/types.h>

#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

/// Makes the call of `attempt`, one of chmod, fchmod, fchmodat and fchmodat2, on an object that belongs to `owner`.
/// Returns its errno, 0 after success.
int setModeWithoutSetIds(const Attempt& attempt, const Listener& listener, uid_t owner);

}  // namespace caisson::supervise
