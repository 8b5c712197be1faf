// Which command of a session a connection comes from: its commands share one network, and a connection does not say who
// made it.
//
// Found in the host's /proc: the socket with these two ends, and whether a process of the command holds it. A process
// belongs to a command as for its end (session/init/tree.cc): it descends from the command's first one, or is still in
// its session or process group. One that has left both behind is nobody's any more. Whatever cannot be read is not
// found: the answer is then no.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "egress/host_name.h"

namespace caisson::supervise {

/// `init`: pid 1 of the sandbox, as this process sees it; `root`: the command's first process, as pid 1 sees it.
bool commandHolds(pid_t init, pid_t root, const egress::HostPort& from, const egress::HostPort& to);

// Pure parsers of /proc texts.

/// The inode of the socket with these ends in /proc/PID/net/tcp or tcp6; 0 if there is none.
std::uint64_t inodeIn(std::string_view table, const egress::HostPort& from, const egress::HostPort& to);
struct Relations {
  pid_t parent = 0, group = 0, session = 0;
};
/// Of /proc/PID/stat; zeros for anything else.
Relations relationsIn(std::string_view stat);
/// The process's number in the innermost pid namespace it is in, from /proc/PID/status; 0 for anything else.
pid_t innermostNumberIn(std::string_view status);

}  // namespace caisson::supervise
