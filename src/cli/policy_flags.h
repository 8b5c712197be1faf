// Converts the options of policy_options.h to a policy.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/policy.h"
#include "cli/options.h"
#include "cli/project.h"

namespace caisson::policy {
struct Policy;
}

namespace caisson::cli {

/// Builds the policy that these arguments describe: the profile or file (else the project's policy, else the owner's
/// default profile), then each flag in order. Hosts or ports without network mode `proxy` are an error.
Result<Policy> policyFrom(const Arguments& arguments);

/// A policy and where its base comes from: a file, the project, a profile that `--profile` names, or the default.
enum class PolicyBase : std::uint8_t { file, project, profile, standard };
struct BasedPolicy {
  Policy policy;
  PolicyBase base = PolicyBase::standard;
  std::string directory;  ///< of the project's file
};
/// policyFrom() with the project's policy looked up as `project` says.
Result<BasedPolicy> basedPolicyFrom(const Arguments& arguments, const ProjectLookup& project);

/// Applies each flag to `base`, in order.
Result<Policy> withFlags(Policy base, const Arguments& arguments);

/// The policy keys that the flags set.
std::vector<std::string> keysOfFlags(const Arguments& arguments);

/// Rewrites a library error about a policy key to name the flag that set the key. Returns other errors
/// unchanged.
Error attributeToFlag(Error error, const Arguments& arguments);

/// Fails if the policy has what no session can do. Called before the owner is asked for approvals, which could not
/// make it possible.
Result<void> checkForSession(const Arguments& arguments, const policy::Policy& policy);

/// A variable from `--env K=V`, or `--env K` with the caller's value. readVariable() returns nothing, and prints a
/// notice, if the caller has none.
struct Variable {
  std::string name, value;
};
Result<std::optional<Variable>> readVariable(std::string_view text);

/// The parts of `--workspace DIR[:MODE]`. Both may be empty: the current directory, the policy's mode.
/// splitWorkspace() fails if another text than a mode follows the last colon, unless that text has a slash.
struct WorkspaceArgument {
  std::string_view directory, mode;
};
Result<WorkspaceArgument> splitWorkspace(std::string_view text);

}  // namespace caisson::cli
