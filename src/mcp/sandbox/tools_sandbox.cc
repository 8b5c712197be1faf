// Tools for whole sandboxes: create, list, inspect, destroy.
#include <algorithm>
#include <ranges>

#include "approval/owner.h"
#include "mcp/sandbox/approval.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"
#include "mcp/sandbox/workspace.h"
#include "policy/decode/widening.h"
#include "policy/describe/json.h"
#include "policy/limits.h"
#include "policy/profiles/profiles.h"

namespace caisson::mcp {
namespace {

constexpr Parameter kCreateParameters[] = {
    {.name = "name", .description = "A short name for people: letters, digits, '-', '_', '.'."},
    {.name = "workspace_path",
     .description = "Absolute path of a host directory to start from. It appears at /workspace; changes stay in the "
                    "sandbox and never touch the original until sandbox_commit. Default: the user's project.",
     .fixed_by = kFixedWorkspace},
    {.name = "empty",
     .type = ParameterType::boolean,
     .description = "Start with an empty /workspace instead.",
     .fixed_by = kFixedEmpty},
    {.name = "timeout_seconds",
     .type = ParameterType::integer,
     .description = "The sandbox expires after this many seconds without a request (default 3600). Uncommitted changes "
                    "are kept for 7 more days, for the user.",
     .least = 1,
     .most = 7 * 24 * 3600},
    {.name = "profile",
     .description = "The policy to start from: dev (default), bash, shell, strict, or another built-in.",
     .fixed_by = kFixedProfile},
    {.name = "image",
     .description = "An image of the user's local store to use instead of this computer's programs, such as debian:12. "
                    "The user is asked.",
     .fixed_by = kFixedImage},
    {.name = "root",
     .type = ParameterType::boolean,
     .description = "Be root inside, so that package managers work in the image. The user is asked.",
     .fixed_by = kFixedUser},
    {.name = "memory", .description = "Memory limit, such as 512M or 2G."},
    {.name = "keep",
     .type = ParameterType::boolean,
     .description = "Keep the sandbox when the server ends, until its time to live is over."},
};

/// The keys in which `policy` allows more than the operator's default. A default that allows all that the built-in one
/// does leaves the choice to the model, as without any default: then there are none.
Result<std::vector<std::string>> keysBeyondDefault(const policy::Policy& policy, const OperatorBounds& bounds) {
  const auto base = bounds.policy("");
  if (!base) return std::unexpected(base.error());
  const auto usual = bounds.policy(std::string(policy::kDefaultProfile));
  if (!usual) return std::unexpected(usual.error());
  std::vector<std::string> keys;
  if (policy::wideningsOver(base->model(), usual->model()).empty()) return keys;
  // Every sandbox gets its own workspace; level and network have questions of their own.
  for (policy::Widening& one : policy::wideningsOver(base->model(), policy))
    if (one.key != "filesystem.workspace.mode" && one.key != "isolation.level" && one.key != "network.mode")
      keys.push_back(std::move(one.key));
  return keys;
}

ApprovalRequest profileRequest(const std::string& profile, const std::vector<std::string>& keys) {
  constexpr std::size_t kMaxNamed = 8;
  std::string text = "Make a sandbox with the profile " + profile + "? It allows more than your default profile: ";
  for (std::size_t i = 0; i < std::min(keys.size(), kMaxNamed); ++i) text += (i == 0 ? "" : ", ") + keys[i];
  if (keys.size() > kMaxNamed) text += " and " + std::to_string(keys.size() - kMaxNamed) + " more";
  return {.what = "profile:" + profile, .message = text + ".", .exactly = profile, .remedy = "leave out profile"};
}

/// A model chooses among profiles; less isolation or more network than the default is the user's decision. What the
/// operator chose is decided.
void addProfileApprovals(const policy::Policy& policy, const std::string& profile, const OperatorBounds& bounds,
                         std::vector<ApprovalRequest>& needed) {
  if (profile.empty() || bounds.fixes(kFixedProfile)) return;
  if (policy.isolation.level != policy::Level::full && !bounds.fixes("isolation.level")) {
    needed.push_back({.what = "level:process",
                      .message = "Make a sandbox with the profile " + profile +
                                 "? It has less isolation than the default: commands see the system files of this "
                                 "computer, and fewer system calls are blocked.",
                      .exactly = profile,
                      .remedy = "use a profile of level full: dev, bash, shell, python, node or strict"});
  }
  if (policy.network.mode == policy::NetworkMode::none || bounds.fixesNetwork()) return;
  std::string hosts;
  for (const std::string& host : policy.network.allowed_hosts) hosts += (hosts.empty() ? "" : ", ") + host;
  needed.push_back({.what = "net:proxy",
                    .message = "Make a sandbox with the profile " + profile +
                               "? It has a network behind the egress filter. Hosts that commands can send data to: " +
                               (hosts.empty() ? "none yet; you are asked about each one." : hosts + "."),
                    .exactly = profile,
                    .remedy = "use another profile, and sandbox_network for single hosts"});
}

/// Sets the image and the user inside that a model chose.
Result<void> setRoot(const Arguments& arguments, Policy& policy, std::vector<ApprovalRequest>& needed) {
  if (arguments.has("image")) {
    const std::string image = arguments.text("image");
    if (image == "host" || image.starts_with('/')) {
      return fail(plainError(Stage::usage, "sandbox_create", image, "expected the name or digest of a stored image",
                             "`caisson image list` shows them"));
    }
    if (auto set = policy.set("filesystem.root", image); !set) return set;
    needed.push_back({.what = "image:" + image,
                      .message = "Make a sandbox from the image " + image +
                                 "? Its commands run the programs of that image instead of this computer's.",
                      .remedy = "leave out image"});
  }
  if (!arguments.flag("root")) return {};
  needed.push_back({.what = "user:root",
                    .message =
                        "Make a sandbox in which commands are root? They are root inside only, without power over "
                        "this computer, and can install packages in the sandbox's image.",
                    .remedy = "leave out root"});
  return policy.set("isolation.user", "root");
}

/// The limits that a model chose, and a time limit also where the user's own commands have none.
Result<void> setLimits(const Arguments& arguments, const OperatorBounds& bounds, Policy& policy) {
  if (arguments.has("memory"))
    if (auto set = policy.set("resources.memory", arguments.text("memory")); !set) return set;
  if (policy::effectiveWallSeconds(policy.model()) != policy::kNoTimeLimit) return {};
  if (std::ranges::find(bounds.keys, "resources.wall_seconds") != bounds.keys.end()) return {};  // --timeout none
  const auto owner = approval::loadOwner();
  if (!owner) return std::unexpected(owner.error());
  policy.model().resources.wall_seconds =
      std::min(policy::defaultWallSeconds(policy::Level::full), owner->ceilingsFor(policy.model()).wall_seconds);
  return {};
}

Result<void> setWorkspace(const std::string& workspace, Policy& policy) {
  if (workspace.empty()) return policy.set("filesystem.workspace.mode", "none");
  if (auto set = policy.set("filesystem.workspace.path", workspace); !set) return set;
  return policy.set("filesystem.workspace.mode", "overlay");
}

/// What a model's commands leave in a cache reaches no sandbox of the user, and with --read-only none at all.
void separateCaches(const OperatorBounds& bounds, policy::Policy& policy) {
  policy.use = "mcp";
  if (!bounds.read_only) return;
  for (policy::Tmpfs& directory : policy.filesystem.tmpfs) directory.cache.clear();
}

Outcome create(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  const OperatorBounds& bounds = sandboxes.settings().bounds;
  if (auto checked = checkModelsName("sandbox_create", arguments.text("name")); !checked)
    return failure(call, checked.error());
  const std::string profile = arguments.text("profile");
  auto policy = bounds.policy(profile);
  if (!policy) return failure(call, policy.error());
  std::string workspace;
  std::vector<ApprovalRequest> needed;
  NeedsInput unanswered;
  if (!arguments.flag("empty")) {
    WorkspaceChoice choice = chooseWorkspace(call, arguments.text("workspace_path"), bounds, needed);
    if (const auto* error = std::get_if<Error>(&choice)) return failure(call, *error);
    if (auto* needs = std::get_if<NeedsInput>(&choice)) unanswered = std::move(*needs);
    if (auto* path = std::get_if<std::string>(&choice)) workspace = std::move(*path);
  }
  if (const auto excess = denyAround(bounds, rootsOf(call), workspace, policy->model()))
    return refuse(call, kCreateTool.name, *excess, {{"workspace_path", workspace}});
  addProfileApprovals(policy->model(), profile, bounds, needed);
  if (!profile.empty() && !bounds.fixes(kFixedProfile)) {
    const auto keys = keysBeyondDefault(policy->model(), bounds);
    if (!keys) return failure(call, keys.error());
    if (!keys->empty()) needed.push_back(profileRequest(profile, *keys));
  }
  if (auto set = setRoot(arguments, *policy, needed); !set) return failure(call, set.error());
  // What can be wrong is found before the user is asked, so that no approval for one use is lost.
  if (auto set = setWorkspace(workspace, *policy); !set) return failure(call, set.error());
  if (auto set = setLimits(arguments, bounds, *policy); !set) return failure(call, set.error());
  AllApproved approved = obtainAll(call, needed, sandboxes.deniedRequests(), std::move(unanswered));
  if (const auto* error = std::get_if<Error>(&approved)) return failure(call, *error);
  if (auto* needs = std::get_if<NeedsInput>(&approved)) return std::move(*needs);
  const char* const network = policy->model().network.mode == policy::NetworkMode::none ? "none" : "proxy";
  separateCaches(bounds, policy->model());
  SessionOptions options{.policy = *std::move(policy), .name = arguments.text("name")};
  options.ttl_seconds = ttlOf(sandboxes, arguments);
  options.keep = arguments.flag("keep");
  const auto make = [&](SessionStore& store) { return store.create(options); };
  auto sandbox = sandboxes.create(make, options.keep);
  if (!sandbox) return failure(call, sandbox.error());
  const auto info = sandboxes.with(**sandbox, [](Session& session) { return session.info(); });
  if (!info) return failure(call, info.error());
  Json made{{"sandbox_id", (*sandbox)->id()},
            {"name", options.name},
            {"workspace", workspace},
            {"directory", info->directory},
            {"profile", profile.empty() ? options.policy.model().name : profile},
            {"network", network},
            {"expires_in_seconds", options.ttl_seconds}};
  if (!info->warnings.empty()) made["warnings"] = info->warnings;
  return structuredResult(call, std::move(made));
}

Json describe(const SessionInfo& info) {
  Json value{{"sandbox_id", info.id},       {"name", info.name},
             {"workspace", info.workspace}, {"directory", info.directory},
             {"created", info.created},     {"expires_in_seconds", static_cast<std::int64_t>(info.expires_in)},
             {"live", info.live},           {"network", info.network}};
  if (!info.allowed_hosts.empty()) value["allowed_hosts"] = info.allowed_hosts;
  if (!info.warnings.empty()) value["warnings"] = info.warnings;
  if (!info.problem.empty()) value["problem"] = info.problem;
  return value;
}

/// The command line of a background command, as sandbox_execute got it.
std::string lineOf(const ExecInfo& info) {
  const bool shell = info.command.size() == 3 && info.command[0] == "sh" && info.command[1] == "-c";
  return (shell ? info.command[2] : info.command.empty() ? "" : info.command.front()).substr(0, 200);
}

/// Recent commands, oldest first: those with an answer of this server, then background commands. Of the latter the
/// newest that run and the newest that ended.
Json commandsOf(const Sandbox& sandbox, const std::vector<ExecInfo>& background) {
  constexpr std::size_t kMaxOfEach = 32;
  Json list = Json::array();
  for (const auto& execution : sandbox.executions())
    list.push_back(
        {{"exec_id", execution->id()}, {"command", execution->command()}, {"running", execution->running()}});
  std::vector<const ExecInfo*> shown;
  std::size_t running = 0, ended = 0;
  for (const ExecInfo& info : std::views::reverse(background))
    if ((info.running ? running : ended)++ < kMaxOfEach) shown.push_back(&info);
  for (const ExecInfo* info : std::views::reverse(shown))
    list.push_back({{"exec_id", backgroundId(info->exec)},
                    {"command", lineOf(*info)},
                    {"running", info->running},
                    {"background", true}});
  return list;
}

Outcome list(Sandboxes& sandboxes, Call& call, const Arguments& /*arguments*/) {
  Json found = Json::array();
  for (const SandboxPointer& sandbox : sandboxes.all()) {
    const auto info = sandboxes.with(*sandbox, [](Session& session) { return session.info(); });
    if (!info) continue;  // it ended meanwhile
    found.push_back(describe(*info));
  }
  return structuredResult(call, {{"sandboxes", std::move(found)}});
}

/// The parts of the policy that can affect a model. The whole policy would fill its context.
Json summaryOf(const std::string& policy) {
  const Json all = Json::parse(policy);
  Json summary{{"name", all["name"]}, {"level", all["isolation"]["level"]}, {"network", all["network"]["mode"]}};
  for (const char* key : {"allowed_hosts", "allowed_ports", "denied_hosts"}) summary[key] = all["network"][key];
  for (const char* key : {"cpus", "memory", "wall_seconds", "output", "open_files"})
    summary[key] = all["resources"][key];
  summary["max_processes"] = all["process"]["max_processes"];
  summary["denied_paths"] = all["filesystem"]["denied"];
  return summary;
}

Outcome info(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto described = sandboxes.with(**sandbox, [](Session& session) { return session.info(); });
  if (!described) return failure(call, described.error());
  Json value = describe(*described);
  // The session keeps background commands, with their denials, in log files.
  const auto background =
      sandboxes.with(**sandbox, [](Session& session) { return session.processes(); }).value_or(std::vector<ExecInfo>());
  value["commands"] = commandsOf(**sandbox, background);
  const auto policy = sandboxes.with(**sandbox, [](Session& session) { return session.policyJson(); });
  if (!policy) return failure(call, policy.error());
  value["policy"] = summaryOf(*policy);
  Json denials = Json::array();
  for (const Denial& denial : (*sandbox)->denials())
    denials.push_back(describeDenial(sandboxes.settings().bounds, denial));
  for (const ExecInfo& command : background)
    for (const Violation& refused : command.violations)
      denials.push_back(describeDenial(sandboxes.settings().bounds, refused));
  value["denials"] = std::move(denials);
  value["audit_uri"] = auditUri(**sandbox);
  Json result = structuredResult(call, std::move(value));
  addLink(call, result, auditUri(**sandbox), "what is on record about the sandbox", "application/json");
  return result;
}

Outcome destroy(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  const std::string id = arguments.text("sandbox_id");
  if (auto destroyed = sandboxes.destroy(id); !destroyed) return failure(call, destroyed.error());
  return structuredResult(call, {{"sandbox_id", id}, {"destroyed", true}});
}

constexpr Parameter kOnlyId[] = {kSandboxId};

}  // namespace

constinit const Tool kCreateTool{
    .name = "sandbox_create",
    .title = "Create a sandbox",
    .description =
        "Make an isolated Linux computer in which any command can be run safely: no network, no access to the user's "
        "files or secrets except a copy-on-write view of one project directory at /workspace. Files and background "
        "processes last until the sandbox is destroyed or its time to live is over (default one hour). Returns "
        "sandbox_id, which every other tool needs; use one sandbox for a whole task.",
    .parameters = kCreateParameters,
    .output = R"("sandbox_id":{"type":"string"},"name":{"type":"string"},
      "workspace":{"type":"string","description":"The host directory it started from; empty: none"},
      "directory":{"type":"string","description":"The workspace in the sandbox"},
      "warnings":{"type":"array","items":{"type":"string"},"description":"Protections that are weaker than usual"},
      "profile":{"type":"string"},"network":{"type":"string"},
      "expires_in_seconds":{"type":"number"})",
    .behaviour = {.destructive = false},
    .perform = create,
};

constinit const Tool kListTool{
    .name = "sandbox_list",
    .title = "List sandboxes",
    .description = "The sandboxes there are, with their ids, workspaces and how long they will live.",
    .output = R"("sandboxes":{"type":"array","items":{"type":"object"}})",
    .behaviour = {.read_only = true, .destructive = false, .idempotent = true},
    .perform = list,
};

constinit const Tool kInfoTool{
    .name = "sandbox_info",
    .title = "Look at a sandbox",
    .description =
        "One sandbox in detail: its workspace, how long it will live, its policy with limits and permitted hosts, its "
        "recent commands with their exec_id, and what was denied in it, each with the rule and what would allow it. "
        "Use it when something fails for no visible "
        "reason.",
    .parameters = kOnlyId,
    .output = R"("sandbox_id":{"type":"string"},"name":{"type":"string"},"workspace":{"type":"string"},
      "created":{"type":"integer"},"expires_in_seconds":{"type":"number"},"live":{"type":"boolean"},
      "network":{"type":"string"},"allowed_hosts":{"type":"array","items":{"type":"string"}},
      "policy":{"type":"object","description":"Limits and rules; memory in bytes or percent of the host's, output in bytes, null: the default"},
      "commands":{"type":"array","items":{"type":"object"}},"denials":{"type":"array","items":{"type":"object"}},
      "audit_uri":{"type":"string","description":"What is on record about the sandbox, as a resource"},
      "problem":{"type":"string"})",
    .behaviour = {.read_only = true, .destructive = false, .idempotent = true},
    .perform = info,
};

constinit const Tool kDestroyTool{
    .name = "sandbox_destroy",
    .title = "Destroy a sandbox",
    .description =
        "End every process of the sandbox and remove all its files. The user's own directory is not touched. Changes "
        "that were not committed are lost.",
    .parameters = kOnlyId,
    .output = R"("sandbox_id":{"type":"string"},"destroyed":{"type":"boolean"})",
    .behaviour = {.destructive = true},
    .perform = destroy,
};

}  // namespace caisson::mcp
