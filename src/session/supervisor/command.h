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
  sys::Fd pipe, log;
  std::uint64_t written = 0, dropped = 0;
};

using supervise::EndedBy;

struct Command {
  using Clock = std::chrono::steady_clock;

  std::uint32_t number = 0;  ///< between the supervisor and pid 1
  std::uint32_t exec = 0;    ///< of a background command, shown to users
  CommandOptions options;
  std::shared_ptr<plan::Plan> plan;
  int client = -1;  ///< the connection that waits for it
  sys::Fd report;   ///< set-up failures, and the listener's number
  sys::Fd terminal_master;
  int pid = 0;  ///< inside the sandbox
  Clock::time_point began;
  std::vector<sys::Fd> streams;  ///< of a foreground command, until it is spawned
  bool recorded = false;         ///< it is in the audit log, and its program may run
  bool executed = false;         ///< its program runs, or has run
  bool answered = false;         ///< the client got `started`
  std::unique_ptr<supervise::CommandRunner> runner;
  std::optional<InitReply> exited;
  std::optional<supervise::CommandTree> tree;
  std::optional<CommandCgroup> cgroup;
  sys::CgroupUsage counted;          ///< by its cgroup, after its exit
  std::uint64_t denials_before = 0;  ///< forks that the session's process limit denied before it started
  std::uint64_t denied_forks = 0;    ///< and while it ran
  int monitor_error = 0;             ///< why blocked calls are not reported
  LogPipe logs[2];
  sys::Fd input;  ///< write end of its standard input, kept for take_input
  sys::EventLoop::TimerId spawn_deadline = 0, cpu_timer = 0, kill_timer = 0, record_timer = 0;
  std::size_t known_secrets = 0;      ///< hidden by the secret watch before it started
  std::vector<Violation> violations;  ///< of a background command, so far

  [[nodiscard]] bool background() const { return options.background; }
  [[nodiscard]] EndedBy endedBy() const { return runner->exit().ended_by; }
};

/// The result of a command that has exited, or whose sandbox has.
RunResult resultOf(const Command& command, const std::string& session);

/// The exit as the files of background commands keep it.
struct EndRecord;
EndRecord endRecordOf(const Command& command, const RunResult& result);

}  // namespace caisson::session
