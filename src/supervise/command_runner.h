// Runs one command to its end, for `caisson run` and for the commands of a session: enforces its time limit, monitors
// its blocked system calls, kills it at most once, and keeps the first cause of its end.
//
// Starting and killing processes differ (a sandbox per run, a process tree in a session's sandbox) and are passed as
// functions. classify() turns the cause into the result.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "supervise/command_exit.h"
#include "supervise/syscalls/syscall_monitor.h"
#include "sys/event_loop.h"

namespace caisson::supervise {

class CommandRunner {
 public:
  using Clock = std::chrono::steady_clock;

  /// `kill` is called at most once; it must lead to an exit of the command or of the whole sandbox.
  CommandRunner(sys::EventLoop& loop, std::function<void()> kill) : loop_(loop), kill_(std::move(kill)) {}
  ~CommandRunner() { stopClock(); }
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  /// Kills the command `seconds` after `began`.
  void limitTime(Clock::time_point began, double seconds);
  /// Stops the time limit.
  void stopClock() { loop_.cancel(std::exchange(deadline_, 0)); }

  /// Records why the command ends, or ended, without killing it. Ignored if it has a cause already or was killed.
  void noteCause(EndedBy cause, Limit limit = Limit::none, std::string reason = {});
  /// As noteCause(), and kills the command, unless that was done before.
  void end(EndedBy cause, Limit limit = Limit::none, std::string reason = {});
  /// Records a failed set-up, or a failed part that the command depends on, as the cause. Ignored if the command has
  /// another cause of its end already, or was killed.
  void fail(Error failure);
  /// The same, and kills the command in any case.
  void failAndKill(Error failure);
  void exited(int wait_status) { exit_.wait_status = wait_status; }

  /// Monitors blocked calls of the command and of its left-behind processes; the monitor may outlive this object.
  void useMonitor(std::shared_ptr<SyscallMonitor> monitor) { monitor_ = std::move(monitor); }
  [[nodiscard]] const std::shared_ptr<SyscallMonitor>& monitor() const { return monitor_; }

  [[nodiscard]] const CommandExit& exit() const { return exit_; }
  [[nodiscard]] CommandExit& exit() { return exit_; }
  [[nodiscard]] bool killed() const { return exit_.killed; }

 private:
  /// Stops the deadline and calls kill_, unless that was done already.
  void killOnce();

  sys::EventLoop& loop_;
  std::function<void()> kill_;
  CommandExit exit_;
  sys::EventLoop::TimerId deadline_ = 0;
  std::shared_ptr<SyscallMonitor> monitor_;
};

}  // namespace caisson::supervise
