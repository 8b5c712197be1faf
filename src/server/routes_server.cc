// The server itself: approvals, policies, audit log, figures, events, health, the OpenAPI document.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>

#include "audit/metrics.h"
#include "audit/reader.h"
#include "image/index_file.h"
#include "image/layout.h"
#include "policy/decode/decode.h"
#include "policy/describe/explain.h"
#include "policy/describe/json.h"
#include "policy/profiles/profiles.h"
#include "server/app.h"
#include "server/audit_access.h"
#include "server/describe.h"
#include "server/streams.h"

namespace caisson::server {
namespace {

constexpr Field kAnswerFields[] = {
    {.name = "decision", .required = true, .description = "allow or deny.", .choices = "allow,deny"},
    {.name = "seconds",
     .type = FieldType::integer,
     .description = "How long the approval holds; a day by default.",
     .least = 1,
     .most = 365.0 * 24 * 3600},
};
constexpr Field kCheckFields[] = {
    {.name = "policy", .type = FieldType::object, .required = true, .description = "A policy document."}};
constexpr Field kAuditQuery[] = {
    {.name = "sandbox", .description = "Only records about this sandbox."},
    {.name = "event", .description = "Only this type of event."},
    {.name = "after", .type = FieldType::integer, .description = "Only records after this number."},
    {.name = "limit",
     .type = FieldType::integer,
     .description = "The newest so many, with at most 4 MiB of data; 100 by default.",
     .least = 1,
     .most = 10'000},
};
constexpr Field kEventsQuery[] = {{.name = "after",
                                   .type = FieldType::integer,
                                   .description = "Begin after this event; Last-Event-ID does the same."}};

http::Response listApprovals(Call& call) {
  const auto all = call.app.inbox().list(call.caller);
  if (!all) return problemOf(all.error());
  Json list = Json::array();
  for (const auto& one : *all) list.push_back(describeApproval(one));
  return jsonResponse(200, {{"approvals", std::move(list)}});
}

http::Response getApproval(Call& call) {
  const auto all = call.app.inbox().list(call.caller);
  if (!all) return problemOf(all.error());
  for (const auto& one : *all)
    if (one.id == call.path[0]) return jsonResponse(200, describeApproval(one));
  return problem(404, "not_found", "no such approval");
}

http::Response answerApproval(Call& call) {
  const bool allow = call.text("decision") == "allow";
  const auto answered =
      call.app.inbox().answer(call.path[0], allow, static_cast<std::int64_t>(call.number("seconds", 0)));
  if (!answered) return problemOf(answered.error());
  call.app.events().publish(allow ? "approval.allowed" : "approval.denied", answered->sandbox, answered->caller,
                            describeApproval(*answered, false));
  return jsonResponse(200, describeApproval(*answered));
}

http::Response listPolicies(Call& /*call*/) {
  Json list = Json::array();
  for (const std::string_view profile : policy::builtinNames()) list.push_back({{"name", profile}});
  return jsonResponse(200, {{"profiles", std::move(list)}, {"default", policy::kDefaultProfile}});
}

http::Response getPolicy(Call& call) {
  const auto profile = policy::builtin(call.path[0]);
  if (!profile) return problem(404, "not_found", "no such profile", "GET /v1/policies lists them");
  auto value = parseJson(policy::toJson(*profile));
  return jsonResponse(200, {{"name", call.path[0]},
                            {"policy", value ? *std::move(value) : Json()},
                            {"explanation", policy::explain(*profile)}});
}

http::Response checkPolicy(Call& call) {
  const auto decoded = policy::parse(writeJson(call.body["policy"]), policy::Format::json, "policy");
  if (!decoded) {
    Json errors = Json::array(
        {{{"key", decoded.error().object}, {"reason", decoded.error().reason}, {"try", decoded.error().hint}}});
    for (const Error& other : decoded.error().others)
      errors.push_back({{"key", other.object}, {"reason", other.reason}, {"try", other.hint}});
    return jsonResponse(200, {{"valid", false}, {"errors", std::move(errors)}});
  }
  Json widenings = Json::array();
  for (const policy::Widening& one : decoded->widenings)
    widenings.push_back({{"key", one.key}, {"from", one.from}, {"to", one.to}});
  return jsonResponse(200, {{"valid", true},
                            {"errors", Json::array()},
                            {"widenings", std::move(widenings)},
                            {"explanation", policy::explain(*decoded)}});
}

http::Response queryAudit(Call& call) {
  auto reader = audit::Reader::open(audit::logDirectory());
  if (!reader) return problemOf(reader.error());
  const std::uint64_t limit = call.queryNumber("limit", 100), after = call.queryNumber("after", 0);
  const std::string sandbox = call.query("sandbox"), event = call.query("event");
  constexpr std::size_t kMaxRecords = std::size_t{4} << 20U;
  std::deque<audit::Entry> found;
  std::size_t bytes = 0;
  AuditAccess access(call.app.sandboxes(), call.caller);
  const auto read = reader->read([&](audit::Entry&& entry, std::string_view) {
    if (entry.seq <= after || (!sandbox.empty() && entry.sandbox != sandbox) ||
        (!event.empty() && entry.event != event))
      return;
    if (!access.mayRead(entry)) return;
    bytes += entry.data.size();
    found.push_back(std::move(entry));
    while (found.size() > limit || (bytes > kMaxRecords && found.size() > 1)) {
      bytes -= found.front().data.size();
      found.pop_front();
    }
  });
  if (!read) return problemOf(read.error());
  JsonList list("records");
  for (const audit::Entry& entry : found) {
    auto data = parseJson(entry.data);
    list.add({{"seq", entry.seq},
              {"time", entry.time},
              {"event", entry.event},
              {"severity", audit::name(entry.severity)},
              {"sandbox_id", entry.sandbox},
              {"data", data ? *std::move(data) : Json::object()}});
  }
  return list.finish();
}

http::Response streamAudit(Call& call) {
  auto slot = call.app.takeSlot(call.caller, App::Lasting::costly);
  if (!slot) return tooMany();
  return streamResponse(auditSource(call.app, call.caller, std::move(slot)));
}

http::Response streamEvents(Call& call) {
  std::uint64_t after = call.app.events().last();
  if (const std::string* last = call.request.head.header("last-event-id"))
    after = std::strtoull(last->c_str(), nullptr, 10);
  auto slot = call.app.takeSlot(call.caller, App::Lasting::events);
  if (!slot) return tooMany();
  return streamResponse(eventSource(call.app, call.caller, call.queryNumber("after", after), std::move(slot)));
}

http::Response getStats(Call& call) {
  const auto metrics = audit::readMetrics(audit::logDirectory());
  if (!metrics) return problemOf(metrics.error());
  Json events = Json::object();
  for (std::size_t i = 0; i < metrics->events.size(); ++i) {
    const auto type = static_cast<audit::EventType>(i);
    if (metrics->events[i] > 0) events[std::string(audit::name(type))] = metrics->events[i];
  }
  return jsonResponse(200, {{"sandboxes", call.app.sandboxes().count()},
                            {"pools", call.app.readyPools()},
                            {"events", std::move(events)},
                            {"read_bytes", metrics->read_bytes},
                            {"written_bytes", metrics->written_bytes},
                            {"network_bytes", metrics->network_bytes},
                            {"version", call.app.options().version}});
}

http::Response listTemplates(Call& call) {
  const auto ready = call.app.readyPools();
  Json list = Json::array();
  for (const service::Template& one : call.app.options().settings.templates) {
    const auto pool = ready.find(one.name);
    list.push_back({{"name", one.name},
                    {"profile", one.policy.profile},
                    {"pool", one.pool},
                    {"ready", pool == ready.end() ? 0 : pool->second}});
  }
  return jsonResponse(200, {{"templates", std::move(list)}});
}

http::Response listImages(Call& /*call*/) {
  Json list = Json::array();
  auto store = sys::RootDir::open(image::storePath());
  if (!store && store.error().sys_errno == ENOENT) return jsonResponse(200, {{"images", std::move(list)}});
  if (!store) return problemOf(store.error());
  const auto names = image::readIndex(*store);
  if (!names) return problemOf(names.error());
  for (const image::StoredName& one : *names)
    list.push_back({{"name", one.name}, {"digest", one.manifest.text()}, {"size", one.size}});
  return jsonResponse(200, {{"images", std::move(list)}});
}

http::Response plainText(std::string text) {
  http::Response response{.body = std::move(text)};
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}};
  return response;
}

http::Response getHealth(Call& /*call*/) { return jsonResponse(200, {{"status", "ok"}}); }

http::Response getReadiness(Call& call) {
  if (!call.app.isReady()) return problem(503, "not_ready", "the session store cannot be read");
  return jsonResponse(200, {{"status", "ready"}});
}

http::Response getMetrics(Call& call) { return plainText(call.app.metrics()); }

http::Response getOpenApi(Call& /*call*/) {
  static const std::string document = openApi();
  http::Response response{.body = document};
  response.headers = {{"Content-Type", "application/json"}, {"X-Content-Type-Options", "nosniff"}};
  return response;
}

http::Response whoAmI(Call& call) {
  return jsonResponse(200,
                      {{"id", call.caller.id},
                       {"name", call.caller.name},
                       {"owner", call.caller.owner},
                       {"scopes", call.caller.owner ? "read,exec,admin" : service::scopeNames(call.caller.scopes)}});
}

constexpr Route kServerRoutes[] = {
    {.method = "GET",
     .pattern = "/v1/approvals",
     .operation = "listApprovals",
     .tag = "approvals",
     .summary = "Requests that wait for the owner: all for the owner, else the caller's",
     .result = "ApprovalList",
     .perform = listApprovals},
    {.method = "GET",
     .pattern = "/v1/approvals/{approval}",
     .operation = "getApproval",
     .tag = "approvals",
     .summary = "One request",
     .result = "Approval",
     .perform = getApproval},
    {.method = "POST",
     .pattern = "/v1/approvals/{approval}",
     .operation = "answerApproval",
     .tag = "approvals",
     .summary = "Allow or deny it; only the owner may",
     .access = Access::owner,
     .body = BodyKind::json,
     .fields = kAnswerFields,
     .result = "Approval",
     .perform = answerApproval},
    {.method = "GET",
     .pattern = "/v1/policies",
     .operation = "listPolicies",
     .tag = "policies",
     .summary = "The built-in profiles",
     .result = "PolicyList",
     .perform = listPolicies},
    {.method = "GET",
     .pattern = "/v1/policies/{profile}",
     .operation = "getPolicy",
     .tag = "policies",
     .summary = "A profile, as a document and explained",
     .result = "Policy",
     .perform = getPolicy},
    {.method = "POST",
     .pattern = "/v1/policies/check",
     .operation = "checkPolicy",
     .tag = "policies",
     .summary = "Check and explain a policy document",
     .body = BodyKind::json,
     .fields = kCheckFields,
     .result = "PolicyCheck",
     .perform = checkPolicy},
    {.method = "GET",
     .pattern = "/v1/audit",
     .operation = "queryAudit",
     .tag = "audit",
     .summary = "Records of the audit log about the caller's sandboxes; for admins about those of all tokens, and "
                "their requests",
     .query = kAuditQuery,
     .result = "AuditList",
     .lane = http::Lane::transfer,
     .perform = queryAudit},
    {.method = "GET",
     .pattern = "/v1/audit/stream",
     .operation = "streamAudit",
     .tag = "audit",
     .summary = "New records, as server-sent events",
     .content_type = "text/event-stream",
     .perform = streamAudit},
    {.method = "GET",
     .pattern = "/v1/events",
     .operation = "streamEvents",
     .tag = "events",
     .summary = "Lifecycle events, as server-sent events",
     .query = kEventsQuery,
     .content_type = "text/event-stream",
     .perform = streamEvents},
    {.method = "GET",
     .pattern = "/v1/stats",
     .operation = "getStats",
     .tag = "server",
     .summary = "Figures of this server",
     .access = Access::admin,
     .result = "Stats",
     .perform = getStats},
    {.method = "GET",
     .pattern = "/v1/templates",
     .operation = "listTemplates",
     .tag = "server",
     .summary = "Templates and their pools",
     .result = "TemplateList",
     .perform = listTemplates},
    {.method = "GET",
     .pattern = "/v1/images",
     .operation = "listImages",
     .tag = "server",
     .summary = "Images that sandboxes can start from",
     .result = "ImageList",
     .perform = listImages},
    {.method = "GET",
     .pattern = "/v1/whoami",
     .operation = "whoAmI",
     .tag = "server",
     .summary = "The caller",
     .result = "Caller",
     .perform = whoAmI},
    {.method = "GET",
     .pattern = "/v1/openapi.json",
     .operation = "getOpenApi",
     .tag = "server",
     .summary = "This document",
     .access = Access::open,
     .result = "Document",
     .perform = getOpenApi},
    {.method = "GET",
     .pattern = "/healthz",
     .operation = "getHealth",
     .tag = "server",
     .summary = "Whether the server runs",
     .access = Access::open,
     .result = "Status",
     .immediate = true,
     .perform = getHealth},
    {.method = "GET",
     .pattern = "/readyz",
     .operation = "getReadiness",
     .tag = "server",
     .summary = "Whether the server can create sandboxes",
     .access = Access::open,
     .result = "Status",
     .perform = getReadiness},
    {.method = "GET",
     .pattern = "/metrics",
     .operation = "getMetrics",
     .tag = "server",
     .summary = "Figures for Prometheus",
     .access = Access::admin,
     .content_type = "text/plain",
     .perform = getMetrics},
};

}  // namespace

std::span<const Route> serverRoutes() { return kServerRoutes; }

}  // namespace caisson::server
