// The canonical name of a path that may not exist yet: where the kernel would make it.
#pragma once

#include <string>
#include <vector>

namespace caisson::sys {

struct RealName {
  std::string path;                ///< canonical, also where a link dangles; empty if the given path was not absolute
  std::vector<std::string> links;  ///< canonical names that decide where it leads: who replaces one redirects the path
};

/// Follows links of an absolute path, at most 40, also those whose target is missing. `..` after a missing directory
/// counts as the directory above it, and the missing one as a link: a program could make it one.
RealName realName(const std::string& path);

}  // namespace caisson::sys
