#include "session/record.h"

#include <array>
#include <utility>
#include <vector>

#include "audit/quarantine.h"
#include "audit/redact.h"
#include "policy/rules/severity.h"
#include "supervise/run_record.h"

namespace caisson::session {
namespace {

using audit::Event;
using audit::EventType;
using audit::Fields;
using audit::Severity;

Event refused(const std::string& session, const std::string& key, const std::vector<std::string>& command,
              const Error& refusal) {
  Fields fields;
  fields.text("tool", key).text("command_preview", audit::redactedPreview(command)).text("reason", refusal.reason);
  return {EventType::sandbox_refused, Severity::error, session, std::move(fields)};
}

std::string_view levelName(const policy::Policy& policy) {
  return policy.isolation.level == policy::Level::full ? "full" : "process";
}

}  // namespace

Result<audit::Log*> Record::open(const policy::Policy& policy) {
  if (!policy.audit.enabled) return nullptr;
  if (!log_) {
    auto log = audit::Log::open();
    if (!log) return fail(log.error());
    log_.emplace(std::move(*log));
    if (defer_) log_->deferWhenBusy();
  }
  return &*log_;
}

Result<void> Record::starting(const std::string& session, const policy::Policy& policy, const plan::Plan& plan,
                              const std::vector<std::string>& command, bool background) {
  const std::string key = audit::commandKey(command);
  const auto refusal = audit::refusalFor({key});
  if (!refusal) return fail(refusal.error());
  auto log = open(policy);
  if (!log) return fail(log.error());
  if (*refusal) {
    if (*log != nullptr) (void)(*log)->append(refused(session, key, command, **refusal));
    return fail(**refusal);
  }
  if (*log == nullptr) return {};
  const auto level = plan.layers.find("level");
  Fields execute;
  execute.text("command_sha256", std::string_view(key).substr(key.find(':') + 1))
      .text("command_preview", audit::redactedPreview(command));
  execute.text("level", level == plan.layers.end() ? "" : level->second)
      .text("network", plan.egress ? "proxy" : "none");
  execute.text("mode", background ? "background" : "foreground");
  const std::array events = {Event{EventType::sandbox_entered, Severity::info, session, {}},
                             Event{EventType::sandbox_execute, Severity::info, session, std::move(execute)}};
  return defer_ ? (*log)->tryAppend(events) : (*log)->append(events);
}

Result<void> Record::ready(const policy::Policy& policy) {
  auto log = open(policy);
  if (!log) return fail(log.error());
  return {};
}

void Record::handOver() {
  hand_over_due_ = true;
  if (!defer_) handOverIfDue();
}

void Record::handOverIfDue() {
  if (std::exchange(hand_over_due_, false) && log_) log_->handOver();
}

void Record::commandRefused(const policy::Policy& policy, const std::vector<std::string>& command,
                            const RunResult& result) {
  auto log = open(policy);
  if (!log || *log == nullptr) return;
  (void)(*log)->append(supervise::refusalEvent(command, result));
  handOver();
}

void Record::pathRefused(const std::string& session, const policy::Policy& policy, const Error& error) {
  auto log = open(policy);
  if (!log || *log == nullptr) return;
  Fields fields;
  fields.text("indicator", policy::name(policy::Indicator::filesystem));
  fields.text("operation", error.call).text("path", error.object).text("reason", error.reason);
  (void)(*log)->append({EventType::policy_violation, Severity::warn, session, std::move(fields)});
  handOver();
}

void Record::filesChanged(const std::string& session, Fields changes) {
  if (log_) (void)log_->append({EventType::files_changed, Severity::info, session, std::move(changes)});
}

void Record::signalForwarded(const std::string& session, int signal) {
  const auto event = signals_.add(session, signal);
  if (log_ && event) (void)log_->append(*event);
}

void Record::note(const std::string& session, EventType type, Fields fields) {
  if (log_) (void)log_->append({type, Severity::info, session, std::move(fields)});
}

void Record::callRefused(const std::string& session, const Violation& violation) {
  supervise::recordViolation(log_ ? &*log_ : nullptr, session, violation);
}

void Record::limitExceeded(const std::string& session, Limit limit, std::string_view reason) {
  if (!log_) return;
  Fields fields;
  fields.text("limit", name(limit)).text("detail", reason);
  (void)log_->append({EventType::limit_exceeded, Severity::warn, session, std::move(fields)});
  handOver();
}

audit::Log* Record::log(const policy::Policy& policy) {
  auto log = open(policy);
  return log ? *log : nullptr;
}

void Record::escaped(const policy::Policy& policy, const plan::Plan& plan, const std::vector<std::string>& command,
                     const supervise::LastOutput& last, RunResult& result, const std::string& rolled_back) {
  const Request request{.policy = Policy(policy), .command = command};
  supervise::respondToEscape(plan, request, last, log_ ? &*log_ : nullptr, result, rolled_back, alert_);
}

void Record::ended(RunResult& result) {
  if (!log_) return;
  std::vector<Event> events;
  if (result.limit == Limit::time)
    events.push_back({EventType::sandbox_timeout, Severity::warn, result.sandbox_id, {}});
  if (result.limit != Limit::none) {
    events.push_back(
        {EventType::limit_exceeded, Severity::warn, result.sandbox_id, Fields().text("limit", name(result.limit))});
  }
  Fields fields;
  fields.text("outcome", name(result.outcome));
  if (result.outcome == OutcomeKind::exited) fields.number("exit_code", result.exit_code);
  if (result.signal != 0) fields.number("signal", result.signal);
  fields.real("duration_ms", result.usage.wall_ms);
  if (result.error) fields.text("error", result.error->message());
  const bool good = result.outcome == OutcomeKind::exited;
  const bool failed = result.outcome == OutcomeKind::setup_failed;
  events.push_back({failed ? EventType::sandbox_failed : EventType::sandbox_exited,
                    good ? Severity::info : Severity::warn, result.sandbox_id, std::move(fields)});
  events.back().measures = supervise::measuresOf(result);
  if (auto written = log_->append(events); !written) {
    result.warnings.push_back("the end of this command is not in the audit log: " + written.error().message());
  }
  handOver();
}

Result<void> Record::lifecycle(const std::string& session, const policy::Policy& policy, std::string_view state,
                               std::string_view detail) {
  auto log = open(policy);
  if (!log) return fail(log.error());
  if (*log == nullptr) return {};
  Fields fields;
  fields.text("state", state);
  if (!detail.empty()) fields.text("detail", detail);
  std::vector<Event> events;
  // A session counts as a sandbox, as a run does.
  if (state == "created" || state == "forked") {
    Fields created;
    created.text("policy", policy.name).text("level", levelName(policy)).flag("session", true);
    if (const std::string values = supervise::valuesAboveCeilings(policy); !values.empty())
      created.text("above_ceilings", values);
    events.push_back({EventType::sandbox_created, Severity::info, session, std::move(created)});
  }
  events.push_back({EventType::lifecycle, Severity::info, session, std::move(fields)});
  if (state == "destroyed") events.push_back({EventType::sandbox_destroyed, Severity::info, session, {}});
  auto written = (*log)->append(events);
  if (written) handOver();
  return written;
}

}  // namespace caisson::session
