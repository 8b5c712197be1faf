// Processes as the host sees them, found without caisson's help.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace caisson::test {

struct ProcessState {
  pid_t parent = -1;
  char state = '?';        ///< as in /proc/PID/stat: R, S, D, T (stopped), Z
  double cpu_seconds = 0;  ///< user and system time of the process and of children it has waited for
  std::string name;        ///< /proc/PID/comm
};

/// nullopt if the process is gone or a zombie.
std::optional<ProcessState> processState(pid_t pid);

/// Live processes with `marker` in their command line, except the caller.
std::vector<pid_t> liveProcesses(const std::string& marker);

/// The first of them: the one whose parent does not have the marker. -1 if there is none.
pid_t firstLiveProcess(const std::string& marker);

/// Sends a signal to exactly one process; false for a pid below 2, since kill(-1) by root would hit the whole machine.
bool signalProcess(pid_t pid, int number);

/// Pid 1 of the PID namespace of `pid`, if that differs from the caller's; else -1.
pid_t sandboxInit(pid_t pid);

/// `ancestor` and all its live descendants.
std::vector<pid_t> processTree(pid_t ancestor);

/// The supervisor of a session (`caisson __session supervise ID`), or -1.
pid_t sessionSupervisor(const std::string& session_id);

}  // namespace caisson::test
