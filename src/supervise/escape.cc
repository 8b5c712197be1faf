#include "supervise/escape.h"

#include <algorithm>
#include <vector>

#include "audit/quarantine.h"
#include "audit/redact.h"
#include "base/format.h"
#include "policy/describe/explain.h"
#include "policy/rules/severity.h"
#include "supervise/disk/caches.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using audit::Event;
using audit::EventType;
using audit::Fields;
using audit::Severity;

constexpr std::size_t kMaxTraces = 100;  // a payload controls how often it is caught

Severity severityOf(const std::string& text) {
  if (text == name(policy::Severity::critical)) return Severity::critical;
  return text == name(policy::Severity::high) ? Severity::warn : Severity::info;
}

Fields fieldsOf(const Violation& violation) {
  std::string arguments = "[";
  for (int i = 0; i < 6; ++i) arguments += format("{}\"{}\"", i == 0 ? "" : ",", hex(violation.arguments[i]));
  Fields fields;
  fields.text("syscall", violation.syscall).number("number", violation.number);
  fields.text("architecture", violation.architecture).raw("arguments", arguments + "]");
  fields.number("syscall_pid", violation.pid).text("program", violation.program);
  fields.text("grade", violation.severity).text("indicator", violation.indicator);
  fields.number("count", violation.count).text("rule", violation.rule);
  return fields;
}

/// Values of variables and arguments of the command may be secrets; the owner may show a trace to others.
std::string planWithoutSecrets(const plan::Plan& plan) {
  plan::Plan copy = plan;
  copy.command = {audit::redactedPreview(plan.command, 4000)};
  for (std::string& variable : copy.environment) variable = variable.substr(0, variable.find('=')) + "=(not kept)";
  return plan::describeJson(copy);
}

std::string policyWithoutSecrets(const policy::Policy& policy) {
  policy::Policy copy = policy;
  for (auto& [variable, value] : copy.environment.set) value = "(not kept)";
  return policy::explain(copy);
}

void removeOldest(const sys::RootDir& traces) {
  auto kept = traces.list("", 10 * kMaxTraces);
  if (!kept || kept->size() < kMaxTraces) return;
  std::vector<std::pair<std::int64_t, std::string>> by_age;
  for (const sys::DirectoryEntry& entry : *kept) {
    if (const auto info = traces.stat(entry.name)) by_age.emplace_back(info->modified_ns, entry.name);
  }
  std::ranges::sort(by_age);
  for (std::size_t i = 0; i + kMaxTraces <= by_age.size(); ++i) (void)traces.removeTree(by_age[i].second);
}

/// A name for a new trace: the sandbox's id, with a number if that exists. A session may have more than one attempt.
std::string freeName(const sys::RootDir& traces, const std::string& id) {
  std::string name = id;
  for (std::size_t number = 2; number <= kMaxTraces && traces.stat(name); ++number) {
    name = id + "-" + std::to_string(number);
  }
  return name;
}

Result<std::string> keepTrace(const plan::Plan& plan, const Request& request, const LastOutput& last,
                              const RunResult& result) {
  const std::string place = sys::stateHome() + "/traces";
  auto directory = sys::openStateDirectory("traces");
  if (!directory) return fail(directory.error());
  auto traces = sys::RootDir::adopt(std::move(*directory), {.known_as = place});
  if (!traces) return fail(traces.error());
  removeOldest(*traces);
  const std::string name = freeName(*traces, result.sandbox_id);
  if (auto made = traces->makeDirs(name, 0700); !made) return fail(made.error());
  std::string events;
  for (const Violation& violation : result.violations) events += fieldsOf(violation).json() + "\n";
  const struct {
    const char* name;
    std::string content;
  } files[] = {{"policy.txt", policyWithoutSecrets(request.policy.model())},
               {"plan.json", planWithoutSecrets(plan)},
               {"events.jsonl", std::move(events)},
               {"stdout.tail", last.out},
               {"stderr.tail", last.err}};
  for (const auto& file : files) {
    auto written = traces->writeFileAtomic(name + "/" + file.name, file.content, 0600);
    if (!written) return fail(written.error());
  }
  return place + "/" + name;
}

/// `kept`: what a session says about its workspace; empty for a run.
std::string rollbackOf(const plan::Plan& plan, const std::string& kept) {
  std::string writable;
  for (const plan::Step& step : plan.steps) {
    const auto* bind = std::get_if<plan::Bind>(&step);
    if (bind == nullptr || !bind->writable || bind->inside || bind->devices) continue;
    writable += (writable.empty() ? "" : ", ") + bind->target;
  }
  const std::string still_there = "not possible for directories that were writable directly" +
                                  (writable.empty() ? "" : " (" + writable + ")") +
                                  "; what the payload changed there is still there";
  if (!kept.empty()) return writable.empty() ? kept : kept + "; rollback was " + still_there;
  return writable.empty() && plan.tier != policy::Tier::landlock ? "every change is discarded" : still_there;
}

/// Caches outlive the sandbox: what the attacker left there must not reach the next one.
std::string discardCaches(const plan::Plan& plan) {
  std::string text;
  for (const plan::Step& step : plan.steps) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&step);
    if (directory == nullptr || directory->cache.empty()) continue;
    const auto evidence = discardCache(*directory);
    text += evidence ? "; the cache " + directory->target + " was emptied, its content is kept in " + *evidence
                     : "; the cache " + directory->target + " was NOT emptied: " + evidence.error().message();
  }
  return text;
}

/// Puts the tool, or exactly this command, into quarantine.
void quarantine(const Request& request, audit::Log* log, RunResult& result) {
  Escape& escape = *result.escape;
  const auto key = request.tool.empty() ? audit::keyForQuarantine(request.command) : request.tool;
  if (!key) {
    result.notices.push_back("not put into quarantine: an interpreter without a program is everybody's");
    return;
  }
  const std::string preview = request.tool.empty() ? audit::redactedPreview(request.command) : "";
  if (auto done = audit::quarantine(
          {.key = *key, .reason = escape.reason, .sandbox = result.sandbox_id, .preview = preview, .since = ""});
      !done) {
    result.notices.push_back("it could not be put into quarantine: " + done.error().message());
    return;
  }
  escape.quarantined = *key;
  result.notices.push_back("it is in quarantine; if you trust it again, on a terminal: caisson tool release " + *key);
  if (log == nullptr) return;
  Fields fields;
  fields.text("tool", *key).text("reason", escape.reason).text("command_preview", preview);
  (void)log->append({EventType::tool_quarantined, Severity::warn, result.sandbox_id, std::move(fields)});
}

Fields alertFields(const Request& request, const Escape& escape) {
  Fields fields;
  fields.text("indicator", escape.indicator).text("grade", escape.severity).text("reason", escape.reason);
  fields.text("rollback", escape.rollback).text("trace", escape.trace).text("quarantined", escape.quarantined);
  fields.text("command_preview", audit::redactedPreview(request.command));
  return fields;
}

}  // namespace

void recordViolation(audit::Log* log, const std::string& sandbox_id, const Violation& violation) {
  if (log == nullptr) return;
  (void)log->append({EventType::syscall_blocked, severityOf(violation.severity), sandbox_id, fieldsOf(violation)});
}

void respondToEscape(const plan::Plan& plan, const Request& request, const LastOutput& last, audit::Log* log,
                     RunResult& result, const std::string& kept, const AlertSender& send) {
  Escape& escape = *result.escape;
  escape.rollback = rollbackOf(plan, kept) + discardCaches(plan);
  result.notices.push_back("rollback: " + escape.rollback);
  if (auto trace = keepTrace(plan, request, last, result)) {
    escape.trace = *trace;
    result.notices.push_back("what it did is kept in " + escape.trace);
  } else {
    result.notices.push_back("the trace of the attempt could not be kept: " + trace.error().message());
  }
  if (request.quarantine) quarantine(request, log, result);
  const Event alert{EventType::escape_attempt, Severity::critical, result.sandbox_id, alertFields(request, escape)};
  if (log != nullptr) {
    if (auto written = log->append(alert); !written) {
      result.notices.push_back("the attempt is not in the audit log: " + written.error().message());
    }
  }
  raiseAlert(alert, log, result, send);
}

}  // namespace caisson::supervise
