// Flags in git's index that keep changes of a file out of `git status` and `git diff`: assume-unchanged, skip-worktree.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "sys/root_dir.h"

namespace caisson::host {

/// The files with such a flag in the index of a git directory, also in the shared part of a split index; a file whose
/// name cannot be told is "?". `read` returns the content of a file of the git directory, or nothing. Empty if git
/// could not read the index either.
std::set<std::string> unwatchedFiles(const std::function<std::optional<std::string>(const std::string& name)>& read);

/// The same for the git directory at this path of a workspace.
std::set<std::string> unwatchedFiles(const sys::RootDir& root, const std::string& git_directory);

}  // namespace caisson::host
