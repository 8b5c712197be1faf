// Checks of a decoded policy: plausible values, ceilings, rules that do not contradict.
//
// Pure: does not access the host. Every error names the key; nothing is clipped, dropped or ignored.
#pragma once

#include <optional>

#include "caisson/error.h"
#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

/// What is wrong with a value, without its file and line.
struct Problem {
  std::string key;     ///< "filesystem.tmpfs[1].size"
  std::string reason;  ///< "expected ..., got ..."
  std::string hint;
};

/// Checks one field's value: syntax of paths, names and patterns, range of numbers. Returns the first problem. Does not
/// check ceilings and credentials; findProblems() does.
std::optional<Problem> checkValue(const Field& field, const Value& value);

/// checkValue(), then the ceiling, which does not bind the fields of Policy::typed.
std::optional<Problem> checkField(const Field& field, const Value& value, const Policy& policy,
                                  const Ceilings& ceilings);

/// The problem as the error of validate().
Error errorOf(const Problem& problem);

/// The values above these ceilings, also those that Policy::typed exempts: "resources.memory = 4 GiB, resources.cpus =
/// 4"; or empty.
std::string valuesAboveCeilings(const Policy& policy, const Ceilings& ceilings);

/// Checks every value and its ceiling (except for Policy::typed). If all are valid, also checks credentials, rules that
/// contradict each other, and the ceiling of processes and threads together. Empty: valid.
std::vector<Problem> findProblems(const Policy& policy, const Ceilings& ceilings);

/// findProblems() as a Result, with ceilingsOf(policy).
Result<void> validate(const Policy& policy);
/// The same with these ceilings.
Result<void> validate(const Policy& policy, const Ceilings& ceilings);

}  // namespace caisson::policy
