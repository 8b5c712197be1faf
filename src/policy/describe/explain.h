// Describes a policy: its values, defaults, ceilings and widenings.
#pragma once

#include <string>

#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

/// The maximum for display, or "" without a ceiling.
std::string ceilingText(Ceiling ceiling, const Ceilings& ceilings);

/// The value in force, for display. For an unset key whose default depends on the level or is a built-in table, that
/// default; for other unset keys "unset".
std::string valueInForce(const Field& field, const Policy& policy);

/// The whole description with ceilingsOf(policy): one row per key, all presets, the widenings. Control characters in
/// values become `?`.
std::string explain(const Policy& policy);
/// The same with other ceilings, such as an owner's.
std::string explain(const Policy& policy, const Ceilings& ceilings);

}  // namespace caisson::policy
