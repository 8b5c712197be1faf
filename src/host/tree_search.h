// Searches the directories of the host that a sandbox shows: the workspace, and those that the policy names.
#pragma once

#include "host/facts.h"
#include "plan/plan.h"

namespace caisson::host {

/// Fills `facts.scan` and `facts.named_trees`. Call when the workspace and the named paths are known. A tree that is
/// written directly is registered first, if a program will run (host/tree_writers.h).
void searchShownTrees(const policy::Policy& policy, const CollectOptions& options, plan::HostFacts& facts);

}  // namespace caisson::host
