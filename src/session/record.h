// A session in the audit log: commands before they run, how they ended, and changes of the session's state.
#pragma once

#include <optional>
#include <string>

#include "audit/log.h"
#include "caisson/session.h"
#include "plan/plan.h"
#include "supervise/escape.h"
#include "supervise/run_record.h"

namespace caisson::session {

class Record {
 public:
  /// For a process that must not wait for other writers of the log (audit::Log::deferWhenBusy), nor for handOver().
  void deferWhenBusy() { defer_ = true; }
  /// For a process that may not start programs.
  void sendAlertsBy(supervise::AlertSender sender) { alert_ = std::move(sender); }
  [[nodiscard]] bool hasDeferred() const { return log_ && log_->hasDeferred(); }
  void flush(bool wait = false) {
    if (log_) log_->flush(wait);
  }
  /// Records that a command is about to start. On an error it must not; EWOULDBLOCK: another writer holds the log,
  /// retry.
  Result<void> starting(const std::string& session, const policy::Policy& policy, const plan::Plan& plan,
                        const std::vector<std::string>& command, bool background);
  /// Opens the log. On an error nothing could be recorded.
  Result<void> ready(const policy::Policy& policy);
  /// Starts the sync of recorded events to disk. After deferWhenBusy() only handOverIfDue() does it, after responses to
  /// clients are sent.
  void handOver();
  void handOverIfDue();
  /// Records a command that the policy's rules denied.
  void commandRefused(const policy::Policy& policy, const std::vector<std::string>& command, const RunResult& result);
  /// Records a requested path of the workspace that leads out of it.
  void pathRefused(const std::string& session, const policy::Policy& policy, const Error& error);
  /// Records what a command changed in the workspace.
  void filesChanged(const std::string& session, audit::Fields changes);
  /// Records a signal that a client sent to a command. A flood is sampled.
  void signalForwarded(const std::string& session, int signal);
  /// Records an ordinary event of a command.
  void note(const std::string& session, audit::EventType type, audit::Fields fields);
  /// Records a blocked call.
  void callRefused(const std::string& session, const Violation& violation);
  /// The response to an escape attempt: alert, trace, quarantine.
  void escaped(const policy::Policy& policy, const plan::Plan& plan, const std::vector<std::string>& command,
               const supervise::LastOutput& last, RunResult& result, const std::string& rolled_back);
  /// A limit of the whole session was exceeded.
  void limitExceeded(const std::string& session, Limit limit, std::string_view reason);
  /// The log, for other events; null if the policy disables it, or it cannot be opened.
  audit::Log* log(const policy::Policy& policy);
  /// Records the end. A failure is a warning: the command is over.
  void ended(RunResult& result);
  /// Records a change of the session's state: "created", "checkpointed", "committed" ... On an error it must not
  /// happen.
  Result<void> lifecycle(const std::string& session, const policy::Policy& policy, std::string_view state,
                         std::string_view detail = {});

 private:
  Result<audit::Log*> open(const policy::Policy& policy);

  std::optional<audit::Log> log_;
  supervise::SignalCounter signals_;
  bool defer_ = false;
  bool hand_over_due_ = false;
  supervise::AlertSender alert_ = supervise::sendAlert;
};

}  // namespace caisson::session
