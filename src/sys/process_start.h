// When a process was started, by which a number that the kernel has given to another process since is recognised.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace caisson::sys {

/// In clock ticks since the machine's start; 0 when there is no such process.
std::uint64_t processStart(pid_t pid);
/// The same from the text of /proc/PID/stat.
std::uint64_t processStartIn(std::string_view stat);

}  // namespace caisson::sys
