// The plan in which an OCI runtime itself runs.
//
// caisson builds the sandbox's root with the same steps as without a runtime, but in the runtime's mount namespace, as
// container engines do: /bundle/rootfs of a private root that holds the runtime, its libraries and the bundle, and
// nothing else of the host. The runtime gets a user namespace with a single id, and the network, cgroup and time
// namespaces of the sandbox. Its container adds user, pid, mount, IPC and UTS namespaces, /proc, and the profile of
// system calls. pid 1 of the container is caisson's (init/): it applies the payload's last layers.
//
// The bundle and the runtime's state are in the memory of that mount namespace: nothing is left after any crash.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace caisson::runtime {

/// Where pid 1 finds the payload's block, and its program.
struct InitArguments {
  std::uint64_t address = 0, bytes = 0;  ///< isolation::BlockFile
  std::string program;                   ///< the executable file's content
};

/// The runtime's command line.
std::vector<std::string> runtimeCommand(const plan::RuntimePlan& runtime);

/// The plan that starts the runtime for `plan`. Its tmpfs steps begin with those of `plan`, in the same order.
plan::Plan outerPlan(const plan::Plan& plan, const InitArguments& init);

/// What pid 1 of the container applies: `plan` without the tree.
plan::Plan payloadPlan(const plan::Plan& plan);

}  // namespace caisson::runtime
