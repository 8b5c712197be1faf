#include "supervise/run_record.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "approval/owner.h"
#include "audit/quarantine.h"
#include "audit/redact.h"
#include "policy/decode/validate.h"

namespace caisson::supervise {
namespace {

using audit::Event;
using audit::EventType;
using audit::Fields;
using audit::Severity;

std::string_view levelName(const plan::Plan& plan) {
  if (plan.tier == policy::Tier::landlock) return "landlock tier";
  switch (plan.level) {
    case policy::Level::none: return "none";
    case policy::Level::process: return "process";
    case policy::Level::full: return "full";
  }
  return "unknown";
}

std::string_view networkName(policy::NetworkMode mode) {
  switch (mode) {
    case policy::NetworkMode::none: return "none";
    case policy::NetworkMode::proxy: return "proxy";
    case policy::NetworkMode::host: return "host";
  }
  return "unknown";
}

Severity severityOf(const RunResult& result) {
  switch (result.outcome) {
    case OutcomeKind::exited: return Severity::info;
    case OutcomeKind::setup_failed: return Severity::error;
    case OutcomeKind::denied: return Severity::error;
    default: return Severity::warn;
  }
}

Fields ending(const RunResult& result) {
  Fields fields;
  fields.text("outcome", name(result.outcome));
  if (result.outcome == OutcomeKind::exited) fields.number("exit_code", result.exit_code);
  if (result.signal != 0) fields.number("signal", result.signal);
  if (result.limit != Limit::none) fields.text("limit", name(result.limit));
  fields.real("duration_ms", result.usage.wall_ms);
  fields.real("user_cpu_ms", result.usage.user_cpu_ms).real("system_cpu_ms", result.usage.system_cpu_ms);
  fields.number("peak_memory_bytes", result.usage.peak_memory_bytes);
  fields.number("read_bytes", result.usage.read_bytes).number("written_bytes", result.usage.written_bytes);
  fields.number("denials", result.denials.size()).number("violations", result.violations.size());
  if (result.error) fields.text("error", result.error->message());
  return fields;
}

}  // namespace

audit::Measures measuresOf(const RunResult& result) {
  const Usage& usage = result.usage;
  std::uint64_t blocked = 0;
  for (const Violation& violation : result.violations) blocked += violation.count;
  return {.outcome = static_cast<std::uint8_t>(result.outcome),
          .wall_seconds = usage.wall_ms / 1e3,
          .cpu_seconds = (usage.user_cpu_ms + usage.system_cpu_ms) / 1e3,
          .peak_memory_bytes = usage.peak_memory_bytes,
          .read_bytes = usage.read_bytes,
          .written_bytes = usage.written_bytes,
          .network_bytes = usage.network_bytes,
          .syscalls_blocked = blocked,
          .network_denied = usage.network_denied};
}

bool isCommandRefusal(const Error& error) { return error.code == ErrorCode::command_denied; }

RunResult refusedResult(const Error& error, std::string sandbox_id) {
  RunResult result;
  result.sandbox_id = std::move(sandbox_id);
  result.error = error;
  result.outcome = OutcomeKind::denied;
  result.denials.push_back({error.object, error.reason, "execute", error.hint});
  return result;
}

audit::Event refusalEvent(const std::vector<std::string>& command, const RunResult& result) {
  const Denial& denial = result.denials.front();
  Fields fields;
  fields.text("rule", denial.rule).text("reason", denial.object);
  fields.text("command_preview", audit::redactedPreview(command));
  return {EventType::policy_violation, Severity::warn, result.sandbox_id, std::move(fields)};
}

std::string valuesAboveCeilings(const policy::Policy& policy) {
  approval::Owner owner;
  // Only typed values may exceed ceilings, and only then the owner's file is worth reading.
  if (!policy.typed.empty()) {
    if (auto loaded = approval::loadOwner()) owner = *std::move(loaded);
  }
  return policy::valuesAboveCeilings(policy, owner.ceilingsFor(policy));
}

void recordRefusal(const Request& request, RunResult& result) {
  if (!request.policy.model().audit.enabled || result.denials.empty()) return;
  auto log = audit::Log::open();
  const auto written = log ? log->append(refusalEvent(request.command, result)) : Result<void>(fail(log.error()));
  if (!written) result.warnings.push_back("the refusal is not in the audit log: " + written.error().message());
}

Result<void> RunRecord::begin(const plan::Plan& plan, const Request& request, const std::string& sandbox_id) {
  const policy::Policy& policy = request.policy.model();
  const std::string key = audit::commandKey(request.command);
  const auto refusal = audit::refusalFor({request.tool, key});
  if (!refusal) return fail(refusal.error());
  if (!policy.audit.enabled && !*refusal) return {};
  auto log = audit::Log::open();
  if (!log) return fail(log.error());
  if (*refusal) {
    Fields refused;
    refused.text("tool", request.tool).text("command_sha256", std::string_view(key).substr(key.find(':') + 1));
    refused.text("command_preview", audit::redactedPreview(request.command)).text("reason", (*refusal)->reason);
    const auto written = log->append({EventType::sandbox_refused, Severity::error, sandbox_id, std::move(refused)});
    return fail(written ? **refusal : written.error());
  }
  const auto workspace = plan.layers.find("workspace");
  Fields created;
  created.text("policy", policy.name).text("level", levelName(plan));
  created.text("workspace", workspace == plan.layers.end() ? "none" : workspace->second);
  created.number("uid", ::geteuid()).number("warnings", plan.warnings.size());
  if (const std::string values = valuesAboveCeilings(policy); !values.empty()) created.text("above_ceilings", values);
  Fields execute;
  execute.text("command_sha256", std::string_view(key).substr(key.find(':') + 1));
  execute.text("command_preview", audit::redactedPreview(request.command));
  if (!request.tool.empty()) execute.text("tool", request.tool);
  execute.text("level", levelName(plan)).text("network", networkName(policy.network.mode));
  for (const char* ports : {"host_ports", "published_ports"}) {
    if (const auto layer = plan.layers.find(ports); layer != plan.layers.end()) execute.text(ports, layer->second);
  }
  const std::array events = {Event{EventType::sandbox_created, Severity::info, sandbox_id, std::move(created)},
                             Event{EventType::sandbox_execute, Severity::info, sandbox_id, std::move(execute)}};
  if (auto written = log->append(events); !written) return fail(written.error());
  log_.emplace(std::move(*log));
  states_ = policy.audit.lifecycle;
  return {};
}

void RunRecord::entered(const std::string& sandbox_id, const StateChange& step) {
  if (!log_ || !states_) return;
  const Event event{EventType::lifecycle, Severity::info, sandbox_id,
                    Fields().text("state", name(step.state)).real("at_ms", step.at_ms)};
  (void)log_->append(event);  // the end of the run is recorded too, and reports a failure
}

void RunRecord::limitNear(const std::string& sandbox_id, const std::string& what) {
  if (!log_) return;
  const std::array events = {
      Event{EventType::limit_approached, Severity::warn, sandbox_id, Fields().text("what", what)}};
  (void)log_->append(events);  // a warning: the end of the run is recorded too, and reports a failure
}

void RunRecord::limitReached(const std::string& sandbox_id, Limit limit) {
  if (!log_) return;
  Fields fields;
  fields.text("limit", name(limit)).text("detail", "reached; the program was not ended");
  (void)log_->append({EventType::limit_exceeded, Severity::warn, sandbox_id, std::move(fields)});
}

void RunRecord::filesChanged(const std::string& sandbox_id, Fields changes) {
  if (log_) (void)log_->append({EventType::files_changed, Severity::info, sandbox_id, std::move(changes)});
}

std::optional<Event> SignalCounter::add(const std::string& sandbox_id, int signal) {
  const std::uint64_t count = ++counts_[signal];
  if (!std::has_single_bit(count)) return std::nullopt;
  const char* known = ::sigabbrev_np(signal);
  Fields fields;
  fields.text("signal", known != nullptr ? "SIG" + std::string(known) : "signal " + std::to_string(signal));
  fields.text("sent_by", "caisson").number("count", count);
  return Event{EventType::signal_sent, Severity::info, sandbox_id, std::move(fields)};
}

void RunRecord::signalForwarded(const std::string& sandbox_id, int signal) {
  const auto event = signals_.add(sandbox_id, signal);
  if (log_ && event) (void)log_->append(*event);
}

void RunRecord::note(const std::string& sandbox_id, EventType type, Fields fields) {
  if (log_) (void)log_->append({type, Severity::info, sandbox_id, std::move(fields)});
}

void RunRecord::end(RunResult& result) {
  if (!log_) return;
  std::vector<Event> events;
  const auto add = [&](EventType type, Severity severity, Fields fields) {
    events.push_back({type, severity, result.sandbox_id, std::move(fields)});
  };
  if (result.limit == Limit::time) add(EventType::sandbox_timeout, Severity::warn, {});
  if (result.limit != Limit::none) {
    add(EventType::limit_exceeded, Severity::warn, Fields().text("limit", name(result.limit)));
  }
  const bool failed = result.outcome == OutcomeKind::setup_failed;
  add(failed ? EventType::sandbox_failed : EventType::sandbox_exited, severityOf(result), ending(result));
  events.back().measures = measuresOf(result);
  add(EventType::sandbox_destroyed, Severity::info, {});
  if (auto written = log_->append(events); !written) {
    result.warnings.push_back("the end of this run is not in the audit log: " + written.error().message());
  }
  log_->handOver();
}

}  // namespace caisson::supervise
