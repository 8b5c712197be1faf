// Finds the command of a session that holds a connection: the commands share one network namespace.
//
// Uses the host's /proc: finds the socket with these two ends, and checks whether a process of the command holds it. A
// process belongs to a command by the same rule as for a kill (command_tree.h): it descends from the command's first
// process, or is still in its session or process group. A process that left all of these belongs to no command. If
// something cannot be read, or the time is over, the answer is no.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string_view>

#include "egress/host_name.h"

namespace caisson::supervise {

/// Whether a process of the command holds the TCP socket with these two ends. `init`: the host pid of the sandbox's
/// pid 1; `root`: the command's first process, as a pid inside the sandbox. False if that is not found by `deadline`:
/// the payload decides how many processes and descriptors there are to look at.
bool commandHolds(pid_t init, pid_t root, const egress::HostPort& from, const egress::HostPort& to,
                  std::chrono::steady_clock::time_point deadline);

// Pure parsers of /proc texts.

/// The inode of the socket with these ends in /proc/PID/net/tcp or tcp6; 0 if there is none.
std::uint64_t inodeIn(std::string_view table, const egress::HostPort& from, const egress::HostPort& to);
struct Relations {
  pid_t parent = 0, group = 0, session = 0;
};
/// Parses /proc/PID/stat; zeros for anything else.
Relations relationsIn(std::string_view stat);
/// The process's pid in its innermost pid namespace, from /proc/PID/status; 0 for anything else.
pid_t innermostNumberIn(std::string_view status);

}  // namespace caisson::supervise
