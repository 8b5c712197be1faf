// Everything in a directory tree that a run could change, as text to compare.
#pragma once

#include <map>
#include <string>

namespace caisson::test {

/// Path below `root` -> inode, mode, owner, links, times and content (or the link's target). Links are not followed.
std::map<std::string, std::string> treeState(const std::string& root);

/// The entries in which the two differ, one per line; empty if none.
std::string differences(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& after);

}  // namespace caisson::test
