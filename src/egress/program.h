// The egress process: `caisson __egress`, started only by a supervisor.
#pragma once

#include <string_view>

namespace caisson::egress {

/// The hidden subcommand.
inline constexpr std::string_view kProgramWord = "__egress";

/// Its open descriptors: to the supervisor, and from pid 1 of the sandbox.
inline constexpr int kSupervisorEnd = 3, kSandboxEnd = 4;
/// With credentials: to the broker.
inline constexpr int kBrokerEnd = 5;
/// In a session: pidfd of pid 1 of the sandbox, and the socket for changes.
inline constexpr int kInitDescriptor = 6, kListenerDescriptor = 7;

/// Runs until the supervisor closes its end or, in a session, pid 1 of the sandbox exits; returns the exit status.
int programMain();

}  // namespace caisson::egress
