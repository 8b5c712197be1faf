// Denied paths (`filesystem.denied`): they win over everything that shows a path.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

// An entry is always a name and a pattern: `pages/[id].tsx` denies the file of that name, and `pages/i.tsx`.

/// Whether a path has wildcards in it.
bool isPattern(std::string_view path);

/// All entries below the workspace, under either of its paths; relative to it. `workspace`: its path on the host.
std::vector<std::string> deniedInWorkspace(const policy::Policy& policy, std::string_view workspace);
std::vector<std::string> deniedInWorkspace(const policy::Policy& policy, const HostFacts& host);

/// A notice for each entry below the workspace that matches nothing in it now.
void noteUnmatched(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Those of them with wildcards, which may match files that appear later.
std::vector<std::string> deniedPatterns(const policy::Policy& policy);

/// The paths inside of what has this path on the host, if the root is a directory of the host that holds it.
std::vector<std::string> namesInRoot(const HostFacts& host, const std::string& path);

/// The denied paths below `directory`, where the workspace is shown; relative to it.
std::vector<std::string> deniedBelow(const policy::Policy& policy, const HostFacts& host, std::string_view directory);

/// Makes mount points of the directories between a writable tree and a path in it that is hidden by its place, which
/// then cannot be renamed: a payload could otherwise move a directory above it, and the next run would show the path
/// under its new name. Call before the path is masked.
void pinAbove(const std::string& tree, const std::string& path, bool executable, Plan& plan);

/// Adds masks for the denied paths below `workspace`, where the workspace is shown, that no overlay hides. Call after
/// every mount in it.
void addDeniedInWorkspace(const policy::Policy& policy, const HostFacts& host, const std::string& workspace,
                          Plan& plan);

/// Adds masks for the other denied paths. Call after every mount they could lie in, so that they win.
/// In both an absent path makes the launch fail where the host or the payload could create it later, is created in a
/// tmpfs, and is skipped elsewhere.
void addDenied(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, Plan& plan);

/// An error for what could not be enforced fully: patterns, except in an overlay or read-only workspace, and paths of
/// the workspace that lead through a link.
Result<void> checkDenied(const policy::Policy& policy, const HostFacts& host);

}  // namespace caisson::plan
