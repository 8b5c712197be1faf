// Denied paths (`filesystem.denied`): they win over everything that shows a path.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Whether a path has wildcards in it.
bool isPattern(std::string_view path);

/// The denied patterns below /workspace, relative to it.
std::vector<std::string> deniedPatterns(const policy::Policy& policy);

/// The denied paths (not patterns) below `directory`, where the workspace is shown; relative to it.
std::vector<std::string> deniedBelow(const policy::Policy& policy, const HostFacts& host, std::string_view directory);

/// Adds masks for the denied paths that no overlay hides. Call after every mount they could lie in, so that they win.
/// An absent path makes the launch fail where the host or the payload could create it later, is created in a tmpfs, and
/// is skipped elsewhere.
void addDenied(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, Plan& plan);

/// An error for what could not be enforced fully: patterns, except in the last part of a path in an overlay workspace,
/// and paths of the workspace that lead through a link.
Result<void> checkDenied(const policy::Policy& policy, const HostFacts& host);

}  // namespace caisson::plan
