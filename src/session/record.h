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

/// Functions without a policy record nothing until one with a policy has opened the log.
class Record {
 public:
  /// For a process that must not wait: while another process holds the log, records are queued (hasDeferred()), and
  /// starting() fails with EWOULDBLOCK. CRITICAL records still wait; queued ones are lost without flush(true) before
  /// the exit. Also delays handOver(). Call before the log is used.
  void deferWhenBusy() { defer_ = true; }
  /// Alerts are sent by this function, for a process that may not start programs.
  void sendAlertsBy(supervise::AlertSender sender) { alert_ = std::move(sender); }
  [[nodiscard]] bool hasDeferred() const { return log_ && log_->hasDeferred(); }
  /// Writes queued records, if the log is free. `wait`: until it is.
  void flush(bool wait = false) {
    if (log_) log_->flush(wait);
  }
  /// Records that a command is about to start. On an error the command must not start; EWOULDBLOCK: another writer
  /// holds the log, retry. Also an error for a command that is quarantined after an escape attempt
  /// (audit/quarantine.h).
  Result<void> starting(const std::string& session, const policy::Policy& policy, const plan::Plan& plan,
                        const std::vector<std::string>& command, bool background);
  /// Opens the log, unless the policy disables it. On an error nothing can be recorded.
  Result<void> ready(const policy::Policy& policy);
  /// Starts the sync of recorded events to disk. After deferWhenBusy() it only notes that this is due, and
  /// handOverIfDue(), called after responses to clients are sent, does it.
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
  /// Responds to an escape attempt, for a result with `escape` set: records it, sends alerts, writes a trace, puts the
  /// command into quarantine, and adds all that to the result. Only the record needs an open log. `rolled_back`: a text
  /// about the rollback, for the same.
  void escaped(const policy::Policy& policy, const plan::Plan& plan, const std::vector<std::string>& command,
               const supervise::LastOutput& last, RunResult& result, const std::string& rolled_back);
  /// Records that a limit of the whole session was exceeded.
  void limitExceeded(const std::string& session, Limit limit, std::string_view reason);
  /// The log, for other events; null if the policy disables it, or it cannot be opened.
  audit::Log* log(const policy::Policy& policy);
  /// Records how a command ended. A failure is added to the result's warnings: the command is over.
  void ended(RunResult& result);
  /// Records a change of the session's state: "created", "checkpointed", "committed" ... On an error the change must
  /// not happen.
  Result<void> lifecycle(const std::string& session, const policy::Policy& policy, std::string_view state,
                         std::string_view detail = {});

 private:
  /// The log, opened if needed; null if the policy disables it.
  Result<audit::Log*> open(const policy::Policy& policy);

  std::optional<audit::Log> log_;
  supervise::SignalCounter signals_;
  bool defer_ = false;
  bool hand_over_due_ = false;
  supervise::AlertSender alert_ = supervise::sendAlert;
};

}  // namespace caisson::session
