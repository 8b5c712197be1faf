// After a run that wrote to a directory of the host: what it could change, but must not change unseen. Files that hooks
// and settings call stay writable, since they are ordinary files of the project; so does git's index.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

/// Adds notices about called files that changed since the plan was made, and about flags in git's index that are new
/// since then. `root` is the directory, `path` its path now.
void reportChanges(const plan::GuardedTree& tree, const sys::RootDir& root, const std::string& path,
                   std::vector<std::string>& notices);

}  // namespace caisson::supervise
