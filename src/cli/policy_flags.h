// Converts the options of policy_options.h to a policy.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "caisson/policy.h"
#include "cli/options.h"

namespace caisson::cli {

/// Builds the policy that these arguments describe: the profile or file, then each flag in order. An error names the
/// flag. Rejects what this build does not support.
Result<Policy> policyFrom(const Arguments& arguments);

/// Rewrites a library error about a policy key to name the flag that set the key.
Error inWordsOfFlags(Error error, const Arguments& arguments);

/// A variable from `--env K=V`, or `--env K` with the caller's value. readVariable() returns nothing, and prints a
/// notice, if the caller has none.
struct Variable {
  std::string name, value;
};
Result<std::optional<Variable>> readVariable(std::string_view text);

/// The parts of `--workspace DIR[:MODE]`. Both may be empty: the current directory, the policy's mode.
struct WorkspaceArgument {
  std::string_view directory, mode;
};
Result<WorkspaceArgument> splitWorkspace(std::string_view text);

}  // namespace caisson::cli
