// The user's home directory, which is never a project: all that the user has would be shown to a sandbox.
#pragma once

#include <string>
#include <vector>

namespace caisson::sys {

/// HOME, if it is an absolute path, and the home of /etc/passwd, with their links resolved.
std::vector<std::string> homeDirectories();

/// Whether `path` (canonical) is a home directory of the user, a directory above one, or /.
bool holdsHome(const std::string& path);

/// The home directory of the user of this name in /etc/passwd (no other user database is read), or "".
std::string homeOfUser(const std::string& user);

}  // namespace caisson::sys
