// The user's home directory, which is never a project: all that the user has would be shown to a sandbox.
#pragma once

#include <string>
#include <vector>

namespace caisson::sys {

/// HOME, if it is an absolute path, and the home of /etc/passwd, with their links resolved.
std::vector<std::string> homeDirectories();

/// Whether `path` (canonical) is a home directory of the user, a directory above one, or /.
bool holdsHome(const std::string& path);

}  // namespace caisson::sys
