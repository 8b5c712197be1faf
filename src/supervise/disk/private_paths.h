// The private directories of a sandbox without a mount namespace: the payload uses them by their paths on the host.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace caisson::supervise {

/// Replaces the names of the plan's private directories (plan::kPrivateHome and others) by `paths`, which are in the
/// order of its directories on disk: in Landlock rules, the environment, the working directory and attribute_trees.
void namePrivateDirectories(const std::vector<std::string>& paths, plan::Plan& plan);

}  // namespace caisson::supervise
