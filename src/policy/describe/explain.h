// Describes a policy: its values, defaults, ceilings and widenings.
#pragma once

#include <string>

#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

/// The maximum of a key, or empty.
std::string ceilingText(Ceiling ceiling, const Ceilings& ceilings);

/// The value in force; for keys whose default depends on the level or is a built-in table, that default.
std::string valueInForce(const Field& field, const Policy& policy);

std::string explain(const Policy& policy);
std::string explain(const Policy& policy, const Ceilings& ceilings);

}  // namespace caisson::policy
