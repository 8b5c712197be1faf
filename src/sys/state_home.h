// Where caisson stores its state.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

/// CAISSON_HOME, or `caisson` in the user's XDG data directory. Uses HOME if it is a directory, else the home of the
/// user database. Empty if there is none. Ignores variables with a relative path; creates nothing.
std::string stateHome();
/// The same without CAISSON_HOME: for what all runs of a user must know.
std::string defaultStateHome();
bool isDefaultStateHome();

/// Where sessions keep their layers if the state directory `home` (canonical) cannot hold an overlay's: in memory,
/// below /dev/shm. The name is unique for the user and the state directory.
std::string memoryStores(uid_t uid, const std::string& home);

/// The home directory of `uid` in /etc/passwd (no other user database is read), or "".
std::string homeFromPasswd(uid_t uid);

/// Creates each missing directory of an absolute path with mode 0700; existing ones are not changed.
Result<void> makePrivatePath(const std::string& path);

/// Opens a private directory below the state directory; creates it if missing. An error if it is a link, belongs to
/// another user or is writable by others, since its content is trusted later.
Result<Fd> openStateDirectory(const std::string& name);
/// The same for any absolute path.
Result<Fd> openPrivateDirectory(const std::string& path);

}  // namespace caisson::sys
