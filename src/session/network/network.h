// A session's egress process.
#pragma once

#include "base/error.h"
#include "egress/process.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline constexpr const char* kEgressSocket = "egress";

/// As a policy writes it.
std::string_view networkName(policy::NetworkMode mode);

/// A connection to a session's egress process, which is there as long as its sandbox is.
Result<sys::Fd> connectEgress(const sys::RootDir& directory);

struct EgressLinks {
  sys::Fd sandbox;  ///< from pid 1
  sys::Fd broker;   ///< to the credential broker, or none
};

/// Starts it for the sandbox whose pid 1 `init` is a descriptor of; it ends with that. Returns when it is at work.
Result<egress::Process> startEgress(const plan::Plan& plan, const sys::RootDir& directory, EgressLinks links, int init);

}  // namespace caisson::session
