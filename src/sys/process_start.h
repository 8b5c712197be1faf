// Start time of a process, to detect that its pid was reused.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace caisson::sys {

/// In clock ticks since boot; 0 if there is no such process.
std::uint64_t processStart(pid_t pid);
/// Same, from the content of /proc/PID/stat.
std::uint64_t processStartIn(std::string_view stat);

}  // namespace caisson::sys
