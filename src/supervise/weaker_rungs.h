// The weaker rungs that a launch took where the host refused the usual way (isolation.may_be_missing).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "isolation/block.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Adds what pid 1 reported in `prepared` to the layers and warnings of a result: each rung with what it does not
/// protect.
void noteRungs(const plan::Plan& plan, const isolation::Message& prepared, std::map<std::string, std::string>& layers,
               std::vector<std::string>& warnings);

/// Warns of the paths of Launched::unmapped.
void noteUnmapped(const std::vector<std::string>& paths, std::vector<std::string>& warnings);

}  // namespace caisson::supervise
