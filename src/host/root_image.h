// What filesystem.root names: the facts about a directory or an image that plans are made from.
#pragma once

#include "plan/plan.h"

namespace caisson::host {

/// Sets facts.root, and the real names of denied paths in that root. Call it after paths were observed.
void observeRootImage(const policy::Policy& policy, plan::HostFacts& facts);

/// The command of the policy's image, entrypoint and arguments; empty if it has none, or the root is not an image.
Result<std::vector<std::string>> imageCommand(const policy::Policy& policy);

}  // namespace caisson::host
