// Denied paths (`filesystem.denied`): they win over everything that shows a path.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Whether a path has wildcards in it.
bool isPattern(std::string_view path);

/// The denied patterns below the workspace, relative to it.
std::vector<std::string> deniedPatterns(const policy::Policy& policy);

/// Denied paths below `directory`, where the workspace is shown; relative to it.
std::vector<std::string> deniedBelow(const policy::Policy& policy, const HostFacts& host, std::string_view directory);

/// Adds masks for the denied paths that no overlay hides. Comes after every mount it could lie in, and so wins.
/// In a tree that is writable directly, a path that does not exist yet cannot be held without privilege.
void addDenied(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, Plan& plan);

/// Patterns, and paths through a link, are refused rather than half enforced.
Result<void> checkDenied(const policy::Policy& policy, const HostFacts& host);

}  // namespace caisson::plan
