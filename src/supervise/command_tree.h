// The processes of one command in a session, found and killed from outside through the host's /proc.
//
// A process belongs to a command if it descends from the command's first process or is still in its session or process
// group. One that has left all of these (a daemon) belongs to the session only, and ends with it. Nothing here depends
// on what the processes do: stopped, undumpable and forking ones are found all the same.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sys/cpu_clock.h"

namespace caisson::supervise {

class CommandTree {
 public:
  /// `init`: pid 1 of the sandbox, as this process sees it; `root`: the command's first process, as pid 1 sees it.
  CommandTree(pid_t init, pid_t root) : init_(init), root_(root) {}

  struct Member {
    pid_t pid = 0;            ///< as this process sees it
    std::uint64_t start = 0;  ///< its start time
    std::uint64_t ticks = 0;  ///< CPU time, own and of children it waited for
  };
  [[nodiscard]] std::vector<Member> members() const;
  /// Sends SIGKILL to all of them. They are stopped first, until no new one appears, so that none forks away.
  void kill() const;
  /// Sends a signal to all of them.
  void signal(int signal) const;
  /// Has the kernel count the CPU time of what the command starts from now on. Where that is not permitted,
  /// cpuMicroseconds() only samples, and misses children that exit unseen.
  void countCpu();
  /// CPU time of all members and the children they waited for. Never falls from one call to the next.
  std::uint64_t cpuMicroseconds();

 private:
  pid_t init_, root_;
  std::uint64_t seen_ = 0, lost_ = 0;
  std::optional<sys::CpuClock> clock_;
};

}  // namespace caisson::supervise
