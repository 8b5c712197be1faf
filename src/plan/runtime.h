// Plans that an OCI runtime carries out (isolation.runtime): what is refused, and what is weaker then.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace caisson::plan {

/// The name of the runtime's program.
std::string_view runtimeName(policy::Runtime runtime);

/// An error if the policy names an OCI runtime: `what` has none.
Result<void> refuseRuntime(const policy::Policy& policy, std::string_view what);

/// An error if the runtime of the policy is missing, cannot enforce what the policy demands, or is weaker than caisson
/// and the policy does not accept that. Nothing to check for caisson itself.
Result<void> checkRuntime(const policy::Policy& policy, const HostFacts& host, bool learn);

/// Makes the payload uid 0 of its user namespace: runtimes need that one, and an ordinary user can map a single id.
void becomeRuntimeUser(const policy::Policy& policy, Plan& plan);

/// The runtime's own processes are in the sandbox's cgroup: adapts its limits.
void leaveRoomForRuntime(const policy::Policy& policy, Plan& plan);

/// Completes a plan for the runtime, and names in its layers and warnings what is weaker.
void planRuntime(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
