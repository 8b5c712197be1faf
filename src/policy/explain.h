// A policy in words: what it says, what is default, what the ceilings are, what was widened (P4).
#pragma once

#include <string>

#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

std::string explain(const Policy& policy);
std::string explain(const Policy& policy, const Ceilings& ceilings);

}  // namespace caisson::policy
