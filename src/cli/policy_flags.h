// From flags to a policy: what the options of policy_options.h mean.
#pragma once

#include <string_view>

#include "caisson/policy.h"
#include "cli/options.h"

namespace caisson::cli {

/// The policy that these arguments describe: the profile or file, then each flag in order.
/// An error names the flag. What this build does not serve is refused here.
Result<Policy> policyFrom(const Arguments& arguments);

/// An error that the library raised later about a key, in the words of the flag that set the key.
Error inWordsOfFlags(Error error, const Arguments& arguments);

/// `--workspace DIR[:MODE]` taken apart. Both parts may be empty: the current directory, the policy's mode.
struct WorkspaceArgument {
  std::string_view directory, mode;
};
Result<WorkspaceArgument> splitWorkspace(std::string_view text);

}  // namespace caisson::cli
