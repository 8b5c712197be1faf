// An owner's approval given on the command line (SPEC A1, A4).
//
// `--approve WHAT` counts as the owner's answer only where a person could have given it: with a
// controlling terminal. Without one it redeems what an owner granted before (approval/store.h), or the
// answer is no. What needs an approval
// and was not approved by flag is asked for on that terminal. Host code under the same uid can
// fake a terminal; it is outside the boundary.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace caisson::policy {
struct Policy;
}

namespace caisson::cli {

/// What the owner approved for this run, for Request::approvals; an error when something needed was not.
Result<std::vector<std::string>> obtainApprovals(const Arguments& arguments, const policy::Policy& policy);

/// What `--approve` names, checked for being something that can be approved, but not for who says it.
/// For verbs that only describe.
Result<std::vector<std::string>> namedApprovals(const Arguments& arguments);

/// An owner's word on one thing, to be kept by the caller: named with `--approve` on a terminal, redeemed from before,
/// or the answer to `question`. How it was given; an error if it was not.
Result<std::string> ownersWord(const Arguments& arguments, const std::string& what, std::string_view question);

/// Asks on the controlling terminal. Without one the answer is no.
bool askOwner(std::string_view question);

}  // namespace caisson::cli
