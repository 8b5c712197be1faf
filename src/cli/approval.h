// An owner's approval given on the command line.
//
// `--approve WHAT` counts as the owner's answer only with a controlling terminal, where a person could have given it.
// Without one it uses a stored approval (approval/store.h) or fails. If something needs an approval and no flag names
// it, the owner is prompted on that terminal. Host code under the same uid can fake a terminal; it is outside the
// boundary.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace caisson::policy {
struct Policy;
}

namespace caisson::cli {

/// Obtains every approval that `--approve` names or the policy requires, and returns them for Request::approvals. An
/// error if one of them is not given, even one that only `--approve` names.
Result<std::vector<std::string>> obtainApprovals(const Arguments& arguments, const policy::Policy& policy);

/// Parses `--approve` and checks that each object can be approved, but not who approves it. For verbs that only
/// describe.
Result<std::vector<std::string>> namedApprovals(const Arguments& arguments);

/// Obtains an owner's approval: with `--approve` on a terminal it is given, with `--approve` and no terminal a stored
/// one is redeemed, without the flag the owner is prompted with `question`. Returns how it was given, which the caller
/// stores, or an error.
Result<std::string> obtainApproval(const Arguments& arguments, const std::string& what, std::string_view question);

/// Prompts on a fresh screen of the controlling terminal and waits for a line. True for `y`, `Y` or `yes`; false
/// without a terminal.
bool askOwner(std::string_view question);

/// The same, with the list that the question is about on the same screen: what a program printed before could be
/// another one. A list that does not fit is shown in pages, each on a fresh screen.
bool askOwnerAbout(std::string_view list, std::string_view question);

}  // namespace caisson::cli
