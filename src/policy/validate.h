// What a decoded policy must also satisfy: values that can mean something, ceilings (P7), rules that agree (P3).
//
// Pure: nothing is looked up on the host. Every error names the key; nothing is clipped, dropped or ignored.
#pragma once

#include <optional>

#include "caisson/error.h"
#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

/// What is wrong with a value, apart from where it was written.
struct Problem {
  std::string key;     ///< "filesystem.tmpfs[1].size"
  std::string reason;  ///< "expected ..., got ..."
  std::string hint;
};

/// Checks one field's value by itself: syntax of paths, names, patterns, numbers that are possible.
std::optional<Problem> checkValue(const Field& field, const Value& value);

/// Checks the whole policy: every value, the ceilings, and that no two rules contradict each other.
std::optional<Problem> findProblem(const Policy& policy, const Ceilings& ceilings);

/// The same as a Result, for callers that have no file to name.
Result<void> validate(const Policy& policy);
Result<void> validate(const Policy& policy, const Ceilings& ceilings);

}  // namespace caisson::policy
