// What all commands of a session have in common, as bytes for this very build of the program to read again.
//
// Not a format for others: it has neither names nor versions, and changes with the types. Whatever the bytes are,
// reading them ends, reads nothing behind their end and allocates no more than a small multiple of their length.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace caisson::session {

struct CommonPlan {
  std::string name;       ///< of the session, or empty
  policy::Policy policy;  ///< of the session's: environment, length of commands, audit. The rest is not encoded.
  plan::Plan plan;        ///< without steps, Landlock rules, cgroup, egress, adapted filter, command and environment
};

std::string encodePlan(const CommonPlan& common);
/// Nothing when the bytes are not exactly one.
std::optional<CommonPlan> decodePlan(std::string_view bytes);

}  // namespace caisson::session
