// The egress process itself: `caisson __egress`, started by a supervisor and by nobody else.
#pragma once

#include <string_view>

namespace caisson::egress {

/// The hidden first word of the command line.
inline constexpr std::string_view kProgramWord = "__egress";

/// Descriptors it finds open: to the supervisor, and from pid 1 of the sandbox.
inline constexpr int kSupervisorEnd = 3, kSandboxEnd = 4;

/// Runs until the sandbox is gone; returns the exit status.
int programMain();

}  // namespace caisson::egress
