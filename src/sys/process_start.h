// Start time of a process, to detect that its pid was reused.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace caisson::sys {

/// The start time in clock ticks since boot; 0 if there is no such process or /proc cannot be read.
std::uint64_t processStart(pid_t pid);
/// The same from the content of /proc/PID/stat; 0 if it is malformed.
std::uint64_t processStartIn(std::string_view stat);

}  // namespace caisson::sys
