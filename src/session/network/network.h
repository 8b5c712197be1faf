// A session's egress process.
#pragma once

#include "base/error.h"
#include "egress/process.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline constexpr const char* kEgressSocket = "egress";

/// The mode as a policy spells it.
std::string_view networkName(policy::NetworkMode mode);

/// Connects to a session's egress process, which runs as long as its sandbox.
Result<sys::Fd> connectEgress(const sys::RootDir& directory);

struct EgressLinks {
  sys::Fd sandbox;  ///< our end of the socket whose other end pid 1 got (egress::makeLink)
  sys::Fd broker;   ///< to the credential broker, or none
};

/// Starts the egress process of a sandbox and returns when it is ready. `init`: a pidfd of the sandbox's pid 1; the
/// egress exits with that.
Result<egress::Process> startEgress(const plan::Plan& plan, const sys::RootDir& directory, EgressLinks links, int init);

}  // namespace caisson::session
