// A session's egress process.
#pragma once

#include "base/error.h"
#include "egress/process.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline constexpr const char* kEgressSocket = "egress";

/// The name in a policy.
std::string_view networkName(policy::NetworkMode mode);

/// Connects to a session's egress process, which runs as long as its sandbox.
Result<sys::Fd> connectEgress(const sys::RootDir& directory);

struct EgressLinks {
  sys::Fd sandbox;  ///< from pid 1
  sys::Fd broker;   ///< to the credential broker, or none
};

/// Starts it for the sandbox whose pid 1 `init` refers to; it exits with that. Returns when it is ready.
Result<egress::Process> startEgress(const plan::Plan& plan, const sys::RootDir& directory, EgressLinks links, int init);

}  // namespace caisson::session
