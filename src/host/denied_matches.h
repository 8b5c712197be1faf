// What entries of `filesystem.denied` match in a workspace now.
#pragma once

#include <string>
#include <vector>

namespace caisson::host {

/// What these entries match now in the open directory `workspace`, relative to it like them. Each part is a name and a
/// pattern (policy::deniesName()). Follows no link. A directory that cannot be
/// read or whose path is too long, where an entry may mean what is in it, is among them.
std::vector<std::string> deniedMatches(int workspace, const std::vector<std::string>& entries);
/// Whether a file of this name, in any directory, could match one of the entries.
bool mayMatch(const std::vector<std::string>& entries, const std::string& name);

}  // namespace caisson::host
