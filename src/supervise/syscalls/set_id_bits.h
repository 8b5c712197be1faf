// chmod for a payload that is root inside: makes the call without its setuid and setgid bits.
//
// Package managers set such modes and fail if they cannot. The bits are never set, on no file: in a directory that the
// host shares they would give other users the caller's rights. A filter cannot change an argument, so the supervisor
// makes the call. The payload controls the path and everything on it; the path is resolved inside its own root, through
// its own mounts, and only objects of this user are changed: it could change each of them itself. With subordinate ids
// that holds for root inside, and for another id of the sandbox only with its own files.
#pragma once

#include <sys/types.h>

#include <functional>

#include "plan/plan.h"
#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

/// Changes the mode of an object, open with O_PATH, that belongs to a subordinate id. Returns an errno, 0 after
/// success.
using ChangeForeignMode = std::function<int(int object, mode_t mode)>;

/// Makes the call of `attempt`, one of chmod, fchmod, fchmodat and fchmodat2, on an object that belongs to the payload
/// or to one of its subordinate ids. Returns its errno, 0 after success.
int setModeWithoutSetIds(const Attempt& attempt, const Listener& listener, const plan::Identity& identity,
                         const ChangeForeignMode& change_foreign);

/// Changes the mode in a child process that enters `user_namespace`, in which the owner's id is mapped. Returns as
/// above.
int changeModeInside(int user_namespace, int object, mode_t mode);
/// The child of it, which sends no exit signal and exits with the errno. Returns its pid, or a negative errno.
long startModeHelper(int user_namespace, int object, mode_t mode);

}  // namespace caisson::supervise
