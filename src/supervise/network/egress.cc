#include "supervise/network/egress.h"

#include <algorithm>
#include <limits>

#include "audit/chain.h"
#include "base/error.h"
#include "egress/process.h"
#include "policy/rules/severity.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kMaxDenials = 100;
constexpr std::size_t kMaxUnreachable = 5;  // notices; the audit log has all of them

audit::EventType eventOf(const egress::Request& request) {
  if (request.allowed && request.operation == "credential") return audit::EventType::credential_used;
  if (request.allowed && request.operation == egress::kOpened) return audit::EventType::proxy_opened;
  if (request.allowed && request.operation == egress::kResolve) return audit::EventType::dns_query;
  if (request.allowed) return audit::EventType::proxy_request;
  if (request.operation == egress::kUnreachable) return audit::EventType::proxy_failed;
  if (request.operation == "redirect") return audit::EventType::redirect_blocked;
  // A permitted name that resolves to an internal address is an attack, not a missing entry.
  if (request.rule.find("addresses are always blocked") != std::string::npos) {
    return audit::EventType::dns_rebind_blocked;
  }
  return request.operation == egress::kResolve ? audit::EventType::proxy_blocked_dns : audit::EventType::proxy_denied;
}

bool record(const egress::Overflow& overflow, audit::Log& log, const std::string& sandbox_id) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  // The egress sends these numbers and may be compromised: they must not overflow.
  const auto nanoseconds = [](std::uint64_t count_ms) {
    constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max() / kMillisecond;
    return static_cast<std::int64_t>(std::min(count_ms, kMax)) * kMillisecond;
  };
  audit::Fields fields;
  fields.text("class", name(overflow.category)).flag("allowed", overflow.allowed).number("count", overflow.count);
  fields.text("first_time", audit::timeText(nanoseconds(overflow.first_ms)));
  fields.text("last_time", audit::timeText(nanoseconds(overflow.last_ms)));
  fields.number("sent_bytes", overflow.sent).number("received_bytes", overflow.received);
  return log.append({audit::EventType::proxy_overflow, audit::Severity::warn, sandbox_id, std::move(fields)})
      .has_value();
}

}  // namespace

bool recordRequest(const egress::Request& request, audit::Log& log, const std::string& sandbox_id,
                   std::string_view error) {
  audit::Fields fields;
  fields.text("operation", request.operation).text("host", request.host);
  if (request.port != 0) fields.number("port", request.port);
  if (!request.address.empty()) fields.text("address", request.address);
  fields.flag("allowed", request.allowed).text("rule", request.rule);
  if (!request.allowed) fields.text("class", name(request.category));
  if (!request.allowed && request.operation != egress::kUnreachable)
    fields.text("indicator", policy::name(policy::Indicator::network));
  fields.number("sent_bytes", request.sent).number("received_bytes", request.received);
  fields.real("duration_ms", request.milliseconds);
  if (!error.empty()) fields.text("error", error);
  if (request.count > 1) fields.number("count", request.count);
  const auto severity = request.allowed ? audit::Severity::info : audit::Severity::warn;
  return log.append({eventOf(request), severity, sandbox_id, std::move(fields)}).has_value();
}

egress::Settings egressSettings(const plan::Plan& plan) {
  egress::Settings settings = egress::settingsFor(plan.egress->network);
  if (settings.dns_servers.empty()) settings.dns_servers = egress::hostDnsServers();
  if (plan.identity.change_user) settings.become = plan.identity.outside_uid;
  settings.landlock_abi = plan.landlock.abi;
  settings.handed_connections = !plan.namespaces.network;
  return settings;
}

void EgressRecord::take(const egress::Report& report, audit::Log* log, const std::string& sandbox_id) {
  switch (report.kind) {
    case egress::Report::Kind::ready: capture_ = report.text; break;
    case egress::Report::Kind::failed:
      failure_ = plainError(Stage::launch, "egress", "egress process", report.text);
      break;
    case egress::Report::Kind::totals: totals_ = report.totals; break;
    case egress::Report::Kind::overflow:
      if (log != nullptr && !record(report.overflow, *log, sandbox_id)) recorded_all_ = false;
      if (!report.overflow.allowed) omitted_ += report.overflow.count;
      break;
    case egress::Report::Kind::whose:
    case egress::Report::Kind::question: break;  // handled by the code that can prompt a user
    case egress::Report::Kind::request: {
      const egress::Request& request = report.request;
      if (log != nullptr && !recordRequest(request, *log, sandbox_id)) recorded_all_ = false;
      if (request.allowed || request.count > 1) break;
      if (request.operation == egress::kUnreachable) {
        if (unreachable_.size() < kMaxUnreachable) {
          unreachable_.push_back("network: " + request.object() + ": " + request.rule + "; " + request.remedy);
        }
        break;
      }
      // Keep room for as many denials of internal addresses: denied names must not push them out of the result.
      const std::size_t most = request.category == egress::Category::host ? kMaxDenials : 2 * kMaxDenials;
      if (denials_.size() >= most) {
        ++omitted_;
        break;
      }
      denials_.push_back({request.rule, request.object(), "network: " + request.operation, request.remedy});
      break;
    }
  }
}

void EgressRecord::fill(RunResult& result) const {
  result.denials.insert(result.denials.end(), denials_.begin(), denials_.end());
  result.notices.insert(result.notices.end(), unreachable_.begin(), unreachable_.end());
  if (omitted_ > 0) {
    result.notices.push_back(std::to_string(omitted_) + " further requests were refused; the first " +
                             std::to_string(denials_.size()) + " are listed, the audit log has the rest");
  }
  if (!recorded_all_) {
    result.warnings.emplace_back(
        "a network request could not be recorded in the audit log; no connection was made after it");
  }
  if (!capture_.empty()) result.layers["network_capture"] = capture_;
  result.usage.network_bytes = totals_.sent + totals_.received - earlier_.sent - earlier_.received;
  result.usage.network_connections = totals_.connections - earlier_.connections;
  result.usage.network_denied = totals_.denied - earlier_.denied;
}

void EgressRecord::fillAndReset(RunResult& result) {
  fill(result);
  denials_.clear();
  unreachable_.clear();
  omitted_ = 0;
  earlier_ = totals_;
}

}  // namespace caisson::supervise
