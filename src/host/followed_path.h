// Where paths lead, link by link as the kernel resolves them: also through links outside of a workspace, which may lead
// back into it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/rules/protected_links.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Reads links outside of `workspace`, a canonical path. A mount that shows the workspace, a directory above or below
/// it a second time counts as a link to that. File systems that may not answer (network, FUSE) are not asked, unless
/// the workspace, a home directory or the root lies there. It remembers what it read: use one for one search.
policy::OutsideLinks linksOutside(const std::string& workspace);

struct FollowedPath {
  std::string path;  ///< absolute, without links, `.` and `..`; parts that do not exist stay as they are
  std::optional<std::string> entered;  ///< what was left of the path where it first came to the workspace
  std::vector<std::string> links;      ///< on the way, in the workspace
  bool exists = true;                  ///< as far as it is in the workspace
};

/// Follows an absolute path. `workspace` is the canonical path of `root`. nullopt: more links than the kernel follows.
std::optional<FollowedPath> followPath(const sys::RootDir& root, const std::string& workspace,
                                       const policy::OutsideLinks& outside, std::string_view path);

/// The path relative to `root` that a link there leads to; nullopt: it leads out, nowhere or in a circle, or `link` is
/// not a link. Adds the other links on the way to `passed`.
std::optional<std::string> linkEnd(const sys::RootDir& root, const std::string& workspace,
                                   const policy::OutsideLinks& outside, const std::string& link,
                                   std::vector<std::string>* passed = nullptr);

/// The path relative to `directory`; "" is the directory itself. nullopt: it is not below it. Both are absolute.
std::optional<std::string> pathBelow(const std::string& directory, const std::string& path);
/// The same without `.`. nullopt also for the directory itself, and for a path with `..`, which depends on links.
std::optional<std::string> plainPathBelow(const std::string& directory, const std::string& path);

}  // namespace caisson::host
