// Monitors the system calls that a filter blocks: grades each attempt, answers and records it, and ends the sandbox
// after an escape attempt. The owner decides what to end: one run, or everything in a session.
#pragma once

#include <functional>
#include <optional>

#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/limits/task_limit.h"
#include "supervise/syscalls/file_attributes.h"
#include "supervise/syscalls/listener.h"
#include "supervise/syscalls/observed_calls.h"
#include "supervise/syscalls/observer.h"
#include "supervise/syscalls/process_log.h"
#include "supervise/syscalls/set_id_bits.h"
#include "supervise/syscalls/violations.h"
#include "sys/event_loop.h"

namespace caisson::supervise {

class SyscallMonitor {
 public:
  using Clock = std::chrono::steady_clock;
  struct Response {
    std::function<void()> end;                     ///< an escape attempt: kill the sandbox
    std::function<void(const Violation&)> record;  ///< an attempt worth logging; called after `end`
    /// No process with the filter is left. May destroy the monitor.
    std::function<void()> closed = [] {};
  };

  /// `high`: shared by the monitors of one sandbox.
  SyscallMonitor(sys::EventLoop& loop, const plan::Plan& plan, Response response,
                 std::shared_ptr<HighAttempts> high = std::make_shared<HighAttempts>())
      : loop_(loop), plan_(plan), violations_(plan, std::move(high)), response_(std::move(response)) {}
  ~SyscallMonitor() { unwatch(); }
  SyscallMonitor(const SyscallMonitor&) = delete;
  SyscallMonitor& operator=(const SyscallMonitor&) = delete;

  /// Starts to handle notifications of the filter's listener.
  void listen(sys::Fd listener);
  /// In a learning run: calls that the filter allows and only reports go to `observer`, and then continue.
  void learn(Observer& observer) {
    observer_ = &observer;
    observed_.emplace(plan_);
  }
  /// Records reported forks, execs and signals, which then continue.
  void logProcesses(ProcessLog::Record record) {
    processes_.emplace(std::move(record));
    observed_.emplace(plan_);
  }
  /// Enforces the plan's separate limits on processes and threads below `init`.
  void limitTasks(pid_t init) {
    tasks_.emplace(plan_, init);
    observed_.emplace(plan_);
  }
  /// Makes calls that change attributes of files for the payload (plan::kServe).
  void changeAttributes(const FileAttributes& attributes) { attributes_ = &attributes; }
  /// Changes modes of files of subordinate ids (set_id_bits.h).
  void changeForeignModes(ChangeForeignMode change) { change_foreign_ = std::move(change); }
  /// Makes connect() for the payload (plan::kServe): `connect` returns its errno.
  using Connect = std::function<int(const Attempt&, const Listener&)>;
  void makeConnections(Connect connect) { connect_ = std::move(connect); }
  /// How many forks and clones limitTasks() denied.
  [[nodiscard]] std::uint64_t deniedTasks() const { return tasks_ ? tasks_->denied() : 0; }
  /// The sandbox is being killed: attempts are no longer graded or answered; their threads wait until they die.
  void stop() { stopped_ = true; }

  [[nodiscard]] const std::optional<Escape>& escape() const { return violations_.escape(); }
  /// Moves the blocked calls, the escape attempt and the forks over a limit into the result.
  void report(RunResult& result);

 private:
  /// Lets the event loop watch the listener. While a flood is slowed down, stops watching and sets a timer that calls
  /// this again.
  void watch();
  void unwatch();
  /// The listener is readable: judges one attempt. Without POLLIN, no process with the filter is left.
  void onEvents(short events);
  /// Grades, answers and records a blocked call; ends the sandbox after an escape attempt.
  void judge(Attempt attempt);
  /// Handles a call that the filter allows and only reports: it continues, unless it is a fork over a limit.
  void judgeObserved(const Attempt& attempt);
  /// Makes the call for the process.
  void serve(const Attempt& attempt);

  sys::EventLoop& loop_;
  const plan::Plan& plan_;
  Listener listener_;
  Violations violations_;
  Response response_;
  std::optional<ObservedCalls> observed_;  ///< set if any of the next three is
  Observer* observer_ = nullptr;
  std::optional<ProcessLog> processes_;
  std::optional<TaskLimit> tasks_;
  const FileAttributes* attributes_ = nullptr;
  Connect connect_;
  ChangeForeignMode change_foreign_;
  bool stopped_ = false;
  int watched_ = -1;                    ///< the descriptor in the loop
  sys::EventLoop::TimerId resume_ = 0;  ///< while a flood is slowed down
};

}  // namespace caisson::supervise
