// Where caisson keeps its own state.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

/// CAISSON_HOME, or `caisson` in the user's XDG data directory. HOME counts if it is a directory, else the one of the
/// user database does. Empty when there is none of these.
std::string stateHome();

/// The home directory the user database gives for `uid`, or "".
std::string homeFromPasswd(uid_t uid);

/// Makes each missing directory of an absolute path, private to this user.
Result<void> makePrivatePath(const std::string& path);

/// An open directory of ours below the state directory, made if missing, private. One that is a link, another user's,
/// or writable by others is refused: what it holds decides what is believed later.
Result<Fd> openStateDirectory(const std::string& name);
/// The same for any absolute path.
Result<Fd> openPrivateDirectory(const std::string& path);

}  // namespace caisson::sys
