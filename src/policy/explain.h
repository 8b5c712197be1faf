// Describes a policy: its values, defaults, ceilings and widenings (P4).
#pragma once

#include <string>

#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

std::string explain(const Policy& policy);
std::string explain(const Policy& policy, const Ceilings& ceilings);

}  // namespace caisson::policy
