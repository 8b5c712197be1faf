// Starts a plan with an OCI runtime.
#pragma once

#include "supervise/launch.h"

namespace caisson::supervise {

/// As launch(), for a plan with a runtime: the pid 1 that it returns is that of the namespaces in which the runtime
/// runs, and its end ends the container too. With Launched::container, the payload is started by the container's pid 1.
Result<Launched> launchRuntime(const plan::Plan& plan, const sys::Cgroup& cgroup, LaunchOptions options);

/// Why the runtime exited before the program was started: what it printed, if anything.
Error runtimeFailure(const plan::RuntimePlan& runtime, int wait_status, int errors);

}  // namespace caisson::supervise
