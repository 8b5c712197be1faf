// One command of a session in its supervisor: from the spawn to the result.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "caisson/run.h"
#include "plan/plan.h"
#include "session/init/init_protocol.h"
#include "session/protocol.h"
#include "session/supervisor/command_cgroups.h"
#include "supervise/command_runner.h"
#include "supervise/processes/command_tree.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::session {

/// Output of a background command, written to a log of bounded size.
struct LogPipe {
  sys::Fd pipe;  ///< read end
  sys::Fd log;   ///< the file
  std::uint64_t written = 0, dropped = 0;
};

using supervise::EndedBy;

struct Command {
  using Clock = std::chrono::steady_clock;

  std::uint32_t number = 0;  ///< identifies it in this supervisor and to pid 1; of every command
  std::uint32_t exec = 0;    ///< identifies a background command to users; 0 for a foreground command
  CommandOptions options;
  std::shared_ptr<plan::Plan> plan;
  int client = -1;          ///< descriptor of the client that waits for it; -1: none
  sys::Fd report;           ///< set-up failures, and the listener's number
  sys::Fd terminal_master;  ///< until the client gets it
  int pid = 0;              ///< inside the sandbox
  Clock::time_point began;
  std::vector<sys::Fd> streams;  ///< of a foreground command, until it is spawned
  bool recorded = false;         ///< it is in the audit log, and its program may run
  bool executed = false;         ///< its program runs, or has run
  bool answered = false;         ///< the client got `started`
  bool alone = true;             ///< no other command ran at the same time
  std::unique_ptr<supervise::CommandRunner> runner;
  std::optional<InitReply> exited;             ///< pid 1 reaped its first process
  std::optional<supervise::CommandTree> tree;  ///< since its pid is known
  std::optional<CommandCgroup> cgroup;         ///< nothing: it runs in the session's
  sys::CgroupUsage counted;                    ///< by its cgroup, after its exit
  std::uint64_t denials_before = 0;            ///< forks that the session's process limit denied before it started
  std::uint64_t denied_forks = 0;              ///< forks that were denied while it ran
  int monitor_error = 0;                       ///< errno: why blocked calls are not reported; 0: they are
  LogPipe logs[2];                             ///< of a background command: standard output and error
  sys::Fd input;                               ///< write end of its standard input, kept for take_input
  sys::EventLoop::TimerId spawn_deadline = 0, cpu_timer = 0, kill_timer = 0, record_timer = 0;
  std::size_t known_secrets = 0;      ///< number of files that the secret watch hid before it started
  std::vector<Violation> violations;  ///< of a background command, so far

  [[nodiscard]] bool background() const { return options.background; }
  [[nodiscard]] EndedBy endedBy() const { return runner->exit().ended_by; }
};

/// The result of a command that has exited, or whose sandbox has. `session`: the id.
RunResult resultOf(const Command& command, const std::string& session);

/// The exit as the files of background commands keep it.
struct EndRecord;
EndRecord endRecordOf(const Command& command, const RunResult& result);

}  // namespace caisson::session
