// The egress process itself: `caisson __egress`, started by a supervisor and by nobody else.
#pragma once

#include <string_view>

namespace caisson::egress {

/// The hidden first word of the command line.
inline constexpr std::string_view kProgramWord = "__egress";

/// Descriptors it finds open: to the supervisor, and from pid 1 of the sandbox.
inline constexpr int kSupervisorEnd = 3, kSandboxEnd = 4;
/// With credentials: to their broker.
inline constexpr int kBrokerEnd = 5;
/// That of a session has two more: pid 1 of the sandbox, and the socket that changes come from.
inline constexpr int kInitDescriptor = 6, kListenerDescriptor = 7;

/// Runs until the sandbox is gone; returns the exit status.
int programMain();

}  // namespace caisson::egress
