// Runs one command to its end, for `caisson run` and for the commands of a session: enforces its time limit, watches
// its blocked system calls, kills it once, and remembers the first cause of its end.
//
// How processes are started and killed differs (a sandbox per run, a process tree in a session's sandbox) and is given
// as functions. What the result says is classify()'s decision.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "supervise/command_exit.h"
#include "supervise/syscall_monitor.h"
#include "sys/event_loop.h"

namespace caisson::supervise {

class CommandRunner {
 public:
  using Clock = std::chrono::steady_clock;

  /// `kill` is called at most once; it must end in an exit of the command or of the whole sandbox.
  CommandRunner(sys::EventLoop& loop, std::function<void()> kill) : loop_(loop), kill_(std::move(kill)) {}
  ~CommandRunner() { stopClock(); }
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  /// Kills the command `seconds` after `began`.
  void limitTime(Clock::time_point began, double seconds);
  /// Its time no longer counts.
  void stopClock() { loop_.cancel(std::exchange(deadline_, 0)); }

  /// Notes why the command ends, or ended. The first cause is the one that its result reports.
  void noteCause(EndedBy cause, Limit limit = Limit::none, std::string reason = {});
  /// Notes the cause and kills the command.
  void end(EndedBy cause, Limit limit = Limit::none, std::string reason = {});
  /// A failed set-up, or a failed part that the command depends on. Errors that follow from being killed don't count.
  void fail(Error failure);
  /// As above, and kills what runs already.
  void failAndKill(Error failure);
  void exited(int wait_status) { exit_.wait_status = wait_status; }

  /// Blocked calls of the command and of processes that it leaves behind, which the monitor may outlive.
  void useMonitor(std::shared_ptr<SyscallMonitor> monitor) { monitor_ = std::move(monitor); }
  [[nodiscard]] const std::shared_ptr<SyscallMonitor>& monitor() const { return monitor_; }

  [[nodiscard]] const CommandExit& exit() const { return exit_; }
  [[nodiscard]] CommandExit& exit() { return exit_; }
  [[nodiscard]] bool killed() const { return exit_.killed; }

 private:
  void killOnce();

  sys::EventLoop& loop_;
  std::function<void()> kill_;
  CommandExit exit_;
  sys::EventLoop::TimerId deadline_ = 0;
  std::shared_ptr<SyscallMonitor> monitor_;
};

}  // namespace caisson::supervise
