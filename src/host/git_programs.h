// Files of a workspace that git's configuration makes git execute: core.hooksPath, included configurations, scripts of
// filters and aliases.
#pragma once

#include <string>
#include <vector>

#include "policy/rules/protected_links.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Adds what the configuration of the git directory at `path`, relative to `root`, names inside the workspace.
/// `workspace` is the absolute path of `root`. Follows includes inside the workspace.
void findGitPrograms(const sys::RootDir& root, const std::string& workspace, const std::string& path,
                     std::vector<policy::NamedProgram>& to);

}  // namespace caisson::host
