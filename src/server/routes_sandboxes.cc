// Sandboxes: create, list, inspect, extend, destroy.
#include <algorithm>
#include <cmath>

#include "base/base64.h"
#include "policy/model.h"
#include "server/app.h"
#include "server/describe.h"
#include "service/policies.h"

namespace caisson::server {
namespace {

using service::SandboxPointer;

constexpr double kWeek = 7.0 * 24 * 3600;

constexpr Field kCreateFields[] = {
    {.name = "name", .description = "A name for people; at most 128 bytes."},
    {.name = "labels",
     .type = FieldType::variables,
     .description = "Labels to find it by: at most 64, names and values of at most 256 bytes."},
    {.name = "template",
     .description = "A template of the server's configuration. Other fields must not be given with it, except name, "
                    "labels and sandbox_timeout."},
    {.name = "profile", .description = "A built-in profile; dev by default."},
    {.name = "policy", .type = FieldType::object, .description = "A policy document, instead of a profile."},
    {.name = "image", .description = "An image of the server's store as root file system, for example debian:12."},
    {.name = "checkpoint", .description = "Start from a checkpoint of another sandbox: ID or ID:CHECKPOINT."},
    {.name = "workspace",
     .description = "A host directory that the server allows (--allow-workspace). Changes stay in the sandbox until "
                    "they are committed. Default: an empty workspace."},
    {.name = "memory", .description = "Memory limit, for example 512M."},
    {.name = "disk", .description = "Limit of what the sandbox can write, for example 1G."},
    {.name = "cpus", .type = FieldType::number, .description = "Share of CPUs.", .least = 0.01, .most = 4096},
    {.name = "environment", .type = FieldType::variables, .description = "Variables of every command."},
    {.name = "allowed_hosts",
     .type = FieldType::texts,
     .description = "Hosts that the sandbox may reach. A token needs the owner's approval of each."},
    {.name = "command_timeout",
     .type = FieldType::number,
     .description = "Seconds after which a command is killed, unless it names another; 120 by default.",
     .least = 0.001,
     .most = kWeek},
    {.name = "sandbox_timeout",
     .type = FieldType::number,
     .description = "Seconds without a request after which the sandbox ends; 3600 by default.",
     .least = 1,
     .most = kWeek},
};

constexpr Field kListQuery[] = {
    {.name = "label", .description = "Only those with this label: NAME or NAME=VALUE."},
    {.name = "name", .description = "Only those of this name."},
    {.name = "limit",
     .type = FieldType::integer,
     .description = "At most so many; 100 by default.",
     .least = 1,
     .most = 1000},
    {.name = "cursor", .description = "next_cursor of the page before."},
};

constexpr Field kExtendFields[] = {{.name = "sandbox_timeout",
                                    .type = FieldType::number,
                                    .required = true,
                                    .description = "Seconds from now; every later request restarts them.",
                                    .least = 1,
                                    .most = kWeek}};

service::PolicyOptions optionsOf(const Call& call) {
  service::PolicyOptions options{.profile = call.text("profile"),
                                 .image = call.text("image"),
                                 .workspace = call.text("workspace"),
                                 .memory = call.text("memory"),
                                 .disk = call.text("disk"),
                                 .cpus = call.number("cpus", 0),
                                 .command_timeout = call.number("command_timeout", 0),
                                 .allowed_hosts = call.texts("allowed_hosts")};
  if (const Json* policy = findObject(call.body, "policy")) options.policy_json = writeJson(*policy);
  if (const Json* variables = findObject(call.body, "environment"))
    options.environment = variables->get<std::map<std::string, std::string>>();
  return options;
}

/// What is wrong with the combination of fields; empty if nothing.
std::string findCreateFlaw(const Call& call) {
  static constexpr std::string_view kOwn[] = {"profile", "policy", "image",       "workspace",     "memory",
                                              "disk",    "cpus",   "environment", "allowed_hosts", "command_timeout"};
  for (const char* source : {"template", "checkpoint"}) {
    if (!call.has(source)) continue;
    for (const std::string_view other : kOwn)
      if (call.has(other))
        return "field \"" + std::string(other) + "\" cannot be given together with \"" + source + "\"";
  }
  if (call.has("template") && call.has("checkpoint")) return "give a template or a checkpoint, not both";
  if (call.has("profile") && call.has("policy")) return "give a profile or a policy, not both";
  if (const Json* labels = findObject(call.body, "labels")) {
    constexpr std::size_t kMaxLabels = 64, kMaxLabel = 256;
    if (labels->size() > kMaxLabels) return "more than 64 labels";
    for (const auto& [name, value] : labels->items())
      if (name.size() > kMaxLabel || value.get_ref<const std::string&>().size() > kMaxLabel)
        return "the name or the value of a label is longer than 256 bytes";
  }
  return findNameFlaw(call);
}

http::Response created(Call& call, const SandboxPointer& sandbox) {
  const auto info = call.app.sandboxes().with(*sandbox, [](Session& session) { return session.info(); });
  if (!info) return problemOf(info.error());
  http::Response response = jsonResponse(201, describeSandbox(*sandbox, *info));
  response.headers.emplace_back("Location", "/v1/sandboxes/" + sandbox->id());
  return response;
}

/// `there`: what an interrupted request made of it already, or null.
http::Response fromCheckpoint(Call& call, const SandboxPointer& there) {
  const std::string source = call.text("checkpoint");
  const std::size_t colon = source.find(':');
  const double ttl = call.number("sandbox_timeout", 3600);
  auto forked = there ? Result<SandboxPointer>(there) : call.app.sandboxes().find(call.caller, source.substr(0, colon));
  if (!there && forked)
    forked = call.app.sandboxes().fork(call.caller, **forked, {.ttl_seconds = ttl}, call.text("name"), call.key);
  if (!forked) return problemOf(forked.error());
  if (colon != std::string::npos) {
    const std::string checkpoint = source.substr(colon + 1);
    const auto restored =
        call.app.sandboxes().with(**forked, [&](Session& session) { return session.restore(checkpoint); });
    (*forked)->forgetHandles();
    if (!restored) {
      (void)call.app.sandboxes().destroy(call.caller, (*forked)->id());
      return problemOf(restored.error());
    }
  }
  return created(call, *forked);
}

http::Response createSandbox(Call& call) {
  if (const std::string flaw = findCreateFlaw(call); !flaw.empty()) return problem(400, "invalid_body", flaw);
  // The repetition of a request that a crash interrupted: the sandbox may exist.
  const SandboxPointer there = call.key.empty() ? nullptr : call.app.sandboxes().findKey(call.key);
  if (there && !call.caller.sees(there->record().owner)) return problemOf(service::noSandbox(there->id()));
  if (call.has("checkpoint")) return fromCheckpoint(call, there);  // whether it was restored is not known
  if (there) return created(call, there);
  const service::Template* made = nullptr;
  if (call.has("template")) {
    made = call.app.findTemplate(call.text("template"));
    if (made == nullptr) return problem(404, "no_template", "no such template", "GET /v1/templates lists them");
  }
  // A template is the owner's: it may have what a token may not choose.
  const service::Principal owner{.id = "owner", .name = "owner", .owner = true};
  TemplatePool* const pool = made != nullptr ? call.app.pool(made->name) : nullptr;
  auto chosen = pool != nullptr ? Result<service::ChosenPolicy>(pool->chosen)
                                : service::choosePolicy(made != nullptr ? owner : call.caller,
                                                        made != nullptr ? made->policy : optionsOf(call),
                                                        call.app.options().settings.allow_workspaces);
  if (!chosen) return problemOf(chosen.error());
  std::vector<service::PendingApproval> missing;
  const auto approved = call.app.inbox().require(call.caller, "", chosen->needs_approval, missing);
  if (!approved) return problemOf(approved.error());
  if (!*approved) return approvalNeeded(call, missing);
  const policy::Policy& model = chosen->policy.model();
  service::SandboxRecord record{.key = call.key, .name = call.text("name"), .profile = model.name};
  if (const Json* labels = findObject(call.body, "labels"))
    record.labels = labels->get<std::map<std::string, std::string>>();
  record.template_name = call.text("template");
  record.command_timeout = chosen->command_timeout;
  record.cpus = std::isfinite(model.resources.cpus) ? model.resources.cpus : 0;
  record.memory = describeMemory(model);
  record.disk = model.filesystem.max_total_size.value_or(0);
  SessionOptions options{.policy = chosen->policy};
  options.ttl_seconds = call.number("sandbox_timeout", 3600);
  auto sandbox = call.app.sandboxes().create(call.caller, std::move(record), std::move(options),
                                             pool != nullptr ? &pool->sessions : nullptr);
  if (!sandbox) return problemOf(sandbox.error());
  return created(call, *sandbox);
}

bool matches(const Call& call, const service::SandboxRecord& record) {
  const std::string name = call.query("name"), label = call.query("label");
  if (!name.empty() && record.name != name) return false;
  if (label.empty()) return true;
  const std::size_t equals = label.find('=');
  const auto found = record.labels.find(label.substr(0, equals));
  return found != record.labels.end() && (equals == std::string::npos || found->second == label.substr(equals + 1));
}

http::Response listSandboxes(Call& call) {
  auto all = call.app.sandboxes().list(call.caller);
  if (!all) return problemOf(all.error());
  const std::string after = call.query("cursor");
  const std::uint64_t limit = call.queryNumber("limit", 100);
  JsonList list("sandboxes");
  std::uint64_t count = 0;
  Json next = nullptr;
  bool full = false;
  std::sort(all->begin(), all->end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.created, a.second.id) < std::pair(b.second.created, b.second.id);
  });
  for (const auto& [sandbox, info] : *all) {
    char place[32];
    std::snprintf(place, sizeof place, "%020lld-", static_cast<long long>(info.created));
    const std::string cursor = place + info.id;
    if (!after.empty() && cursor <= after) continue;
    if (!matches(call, sandbox->record())) continue;
    full = count >= limit || !list.add(describeSandbox(*sandbox, info));
    if (full) break;
    ++count;
    next = cursor;
  }
  if (!full && count < limit) next = nullptr;
  return list.finish("\"next_cursor\":" + writeJson(next));
}

http::Response getSandbox(Call& call) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  const auto info = call.app.sandboxes().with(**sandbox, [](Session& session) { return session.info(); });
  if (!info) return problemOf(info.error());
  const auto policy = call.app.sandboxes().with(**sandbox, [](Session& session) { return session.policyJson(); });
  Json value = describeSandbox(**sandbox, *info);
  if (policy) {
    auto parsed = parseJson(*policy);
    if (parsed) value["policy"] = *std::move(parsed);
  }
  return jsonResponse(200, value);
}

http::Response extendSandbox(Call& call) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  const double seconds = call.number("sandbox_timeout", 3600);
  const auto renewed = call.app.sandboxes().with(**sandbox, [&](Session& session) { return session.renew(seconds); });
  (*sandbox)->forgetHandles();
  if (!renewed) return problemOf(renewed.error());
  const auto info = call.app.sandboxes().with(**sandbox, [](Session& session) { return session.info(); });
  if (!info) return problemOf(info.error());
  return jsonResponse(200, describeSandbox(**sandbox, *info));
}

http::Response destroySandbox(Call& call) {
  if (auto destroyed = call.app.sandboxes().destroy(call.caller, call.id()); !destroyed)
    return problemOf(destroyed.error());
  return {.status = 204};
}

constexpr Route kSandboxRoutes[] = {
    {.method = "POST",
     .pattern = "/v1/sandboxes",
     .operation = "createSandbox",
     .tag = "sandboxes",
     .summary = "Create a sandbox and start it",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kCreateFields,
     .status = 201,
     .result = "Sandbox",
     .lane = http::Lane::control,
     .idempotent_key = true,
     .perform = createSandbox},
    {.method = "GET",
     .pattern = "/v1/sandboxes",
     .operation = "listSandboxes",
     .tag = "sandboxes",
     .summary = "List the caller's sandboxes, oldest first",
     .query = kListQuery,
     .result = "SandboxList",
     .perform = listSandboxes},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}",
     .operation = "getSandbox",
     .tag = "sandboxes",
     .summary = "One sandbox, with its policy",
     .result = "Sandbox",
     .perform = getSandbox},
    {.method = "DELETE",
     .pattern = "/v1/sandboxes/{id}",
     .operation = "destroySandbox",
     .tag = "sandboxes",
     .summary = "Kill everything in the sandbox and remove its files",
     .access = Access::exec,
     .status = 204,
     .lane = http::Lane::control,
     .perform = destroySandbox},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/extend",
     .operation = "extendSandbox",
     .tag = "sandboxes",
     .summary = "Set the sandbox's time to live",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kExtendFields,
     .result = "Sandbox",
     .lane = http::Lane::control,
     .perform = extendSandbox},
};

}  // namespace

std::span<const Route> sandboxRoutes() { return kSandboxRoutes; }

}  // namespace caisson::server
