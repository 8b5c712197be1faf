// The processes of one command in a session, found and killed from outside through the host's /proc.
//
// A process belongs to a command if it descends from the command's first process or is still in its session or process
// group. A process that left all of these (a daemon) is the command's only if no other command can have started it,
// else it belongs to the session and is killed with it. Stopped, undumpable and forking processes are found too.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sys/cpu_clock.h"

namespace caisson::supervise {

class CommandTree {
 public:
  /// `init`: the host pid of the sandbox's pid 1; `root`: the command's first process, as a pid inside the sandbox.
  CommandTree(pid_t init, pid_t root) : init_(init), root_(root) {}

  struct Member {
    pid_t pid = 0;            ///< on the host
    std::uint64_t start = 0;  ///< its start time
    std::uint64_t ticks = 0;  ///< CPU time, own and of children it waited for
  };
  /// Empty once the first process has exited and was reaped: what it left behind belongs to the session only.
  [[nodiscard]] std::vector<Member> members() const;
  /// members() and the daemons of the command, if it had the sandbox to itself: all processes that started after it.
  /// Only members() if an older process is there, since that could have started them.
  [[nodiscard]] std::vector<Member> membersAndDaemons() const;
  /// Sends SIGKILL to all of them. Stops them first, until no new one appears, so that none escapes by forking.
  /// `alone`: no other command ran at the same time, so the command's daemons are killed, too.
  void kill(bool alone) const;
  /// Sends a signal to all of them.
  void signal(int signal) const;
  /// Makes the kernel count the CPU time of processes that the command starts from now on. Where that is not permitted,
  /// cpuMicroseconds() only samples, and misses children that exit between samples.
  void countCpu();
  /// CPU time of all members and the children they waited for. Never decreases.
  std::uint64_t cpuMicroseconds();

 private:
  struct Process;
  /// All processes of the sandbox except pid 1, by pid; `root`: the command's first process, 0 if it has exited.
  [[nodiscard]] std::map<pid_t, Process> look(pid_t& root) const;

  pid_t init_, root_;
  std::uint64_t seen_ = 0, lost_ = 0;
  std::optional<sys::CpuClock> clock_;
};

/// Signals a process only if it is still the one that was found: its pid may have been reused.
void signalExactly(const CommandTree::Member& member, int signal);

}  // namespace caisson::supervise
