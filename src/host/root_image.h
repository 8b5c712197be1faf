// What filesystem.root names: the facts about a directory or an image that plans are made from.
#pragma once

#include "plan/plan.h"

namespace caisson::host {

/// Sets facts.root, and the real names of denied paths in that root. Call it after paths were observed.
void observeRootImage(const policy::Policy& policy, plan::HostFacts& facts);

}  // namespace caisson::host
