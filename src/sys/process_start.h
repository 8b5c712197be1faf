// Start time of a process, to detect that its pid was reused, and whether it still runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace caisson::sys {

/// The start time in clock ticks since boot; 0 if there is no such process or /proc cannot be read.
std::uint64_t processStart(pid_t pid);
/// The same from the content of /proc/PID/stat; 0 if it is malformed.
std::uint64_t processStartIn(std::string_view stat);

/// Whether the process that started at `start` still runs. Not so a zombie: it has no thread left, and the first
/// process of a pid namespace becomes one only after all others in there are gone.
bool stillRuns(pid_t pid, std::uint64_t start);
/// The same from the content of /proc/PID/stat.
bool stillRunsIn(std::string_view stat, std::uint64_t start);

}  // namespace caisson::sys
