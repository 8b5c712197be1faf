// Files of a workspace that git's configuration makes git execute: core.hooksPath, included configurations, scripts of
// filters and aliases.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/rules/protected_links.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Configurations of one git directory that are read, with what they include.
inline constexpr std::size_t kMaxGitConfigs = 32;

/// A path that a configuration names, relative to the workspace, without `.` and `..`. A relative one begins in `base`.
/// nullopt: it is outside. `workspace` is its absolute path.
std::optional<std::string> pathInside(const std::string& workspace, const std::string& base, std::string_view value);

/// Adds what the configuration of the git directory at `path`, relative to `root`, names inside the workspace.
/// `workspace` is the absolute path of `root`. Follows includes inside the workspace.
void findGitPrograms(const sys::RootDir& root, const std::string& workspace, const std::string& path,
                     std::vector<policy::NamedProgram>& to);

}  // namespace caisson::host
