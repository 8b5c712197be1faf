#include "mcp/sandbox/operator_bounds.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "audit/log.h"
#include "base/path_text.h"
#include "mcp/log.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/tools.h"
#include "mcp/sandbox/workspace.h"
#include "policy/decode/decode.h"
#include "policy/decode/syntax.h"
#include "policy/decode/widening.h"
#include "policy/limits.h"
#include "policy/rules/denied_names.h"
#include "sys/home_directory.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kNetworkKeys = "network.";

/// What `--read-only` takes away: they change files of a workspace, or the real ones.
constexpr const Tool* kWriters[] = {&kWriteTool, &kEditTool, &kUploadTool, &kRestoreTool, &kCommitTool};

constexpr struct {
  const Tool& tool;
  const Tool& needs;
} kNeeds[] = {{kExecuteTool, kProcessTool}, {kProcessTool, kExecuteTool}, {kRestoreTool, kCheckpointTool}};

const Tool* toolNamed(std::string_view name) {
  for (const Tool* tool : allTools())
    if (tool->name == name) return tool;
  return nullptr;
}

Excess fixedBy(std::string_view parameter, const std::string& decision) {
  return {std::string(parameter), "the operator of this server decided it: " + decision,
          "leave out `" + std::string(parameter) + "`"};
}

std::string canonicalPath(const std::string& path) {
  std::error_code problem;
  const auto result = std::filesystem::canonical(path, problem);
  return problem ? "" : result.string();
}

/// A value of a fixed parameter. The operator's own value is accepted: it exceeds nothing.
std::optional<Excess> findFixedExcess(const OperatorBounds& bounds, const Parameter& parameter, const Json& value,
                                      const policy::Policy& policy) {
  if (!bounds.fixes(parameter.fixed_by)) return std::nullopt;
  if (parameter.fixed_by == kFixedWorkspace) {
    if (bounds.no_workspace) return fixedBy(parameter.name, "sandboxes show no directory");
    return std::nullopt;  // findWorkspaceExcess() compares the paths
  }
  if (parameter.fixed_by == kFixedEmpty)
    return value == Json(true) ? std::nullopt
                               : std::optional(fixedBy(parameter.name, "sandboxes start with an empty workspace"));
  if (parameter.fixed_by == kFixedProfile && value != Json(policy.name))
    return fixedBy(parameter.name, "the policy is " + policy.name);
  if (parameter.fixed_by == kFixedImage && value != Json(policy.filesystem.root))
    return fixedBy(parameter.name, "the root is " + policy.filesystem.root);
  const bool root = policy.isolation.user == policy::InsideUser::root;
  if (parameter.fixed_by == kFixedUser && value != Json(root))
    return fixedBy(parameter.name, root ? "commands are root inside" : "commands are not root inside");
  return std::nullopt;
}

std::optional<Excess> findWorkspaceExcess(const OperatorBounds& bounds, const Json& values) {
  const auto path = textAt(values, "workspace_path");
  if (!bounds.workspaces || !path || path->empty()) return std::nullopt;
  const std::string real = canonicalPath(*path);
  if (!real.empty() && isShown(bounds, real)) return std::nullopt;
  std::string known;
  for (const std::string& one : bounds.directories) known += (known.empty() ? "" : ", ") + one;
  return Excess{"workspace_path", "the operator of this server did not open this directory",
                known.empty() ? "leave it out" : "these are open: " + known};
}

std::optional<Excess> findMemoryExcess(const OperatorBounds& bounds, const Json& values, const Policy& policy) {
  const auto memory = textAt(values, "memory");
  const policy::Field* field = policy::findField("resources.memory");
  if (!memory || field == nullptr || !(bounds.profile || bounds.fixes(field->key))) return std::nullopt;
  Policy asked = policy;
  if (!asked.set(field->key, *memory)) return std::nullopt;  // no size at all, which the tool reports
  // Only a host can compare a share with a size, so a share that the operator did not choose counts as more.
  if (!policy::isWider(*field, policy.model(), asked.model())) return std::nullopt;
  return Excess{"memory", "it is more than the operator of this server allows", "ask for less, or leave it out"};
}

std::optional<Excess> findTimeExcess(const OperatorBounds& bounds, const Json& values) {
  if (const auto ttl = integerAt(values, "timeout_seconds"); ttl && *ttl > bounds.max_ttl_seconds)
    return Excess{"timeout_seconds", "it is more than the operator of this server allows",
                  "at most " + std::to_string(bounds.max_ttl_seconds)};
  const auto most = bounds.maxCommandSeconds();
  const auto wanted = integerAt(values, "timeout_ms");
  if (!most || !wanted || static_cast<double>(*wanted) / 1e3 <= *most) return std::nullopt;
  return Excess{"timeout_ms", "it is more than the operator of this server allows",
                "at most " + std::to_string(static_cast<std::int64_t>(*most * 1e3))};
}

std::optional<Excess> findVariableExcess(const OperatorBounds& bounds, const Json& values,
                                         const policy::Policy& policy) {
  const Json* variables = findObject(values, "env");
  if (variables == nullptr || !bounds.fixes("environment.set")) return std::nullopt;
  for (const auto& [name, value] : variables->items()) {
    const auto set = policy.environment.set.find(name);
    if (set != policy.environment.set.end() && value != Json(set->second))
      return Excess{"env", "the operator of this server set the variable " + name, "leave out " + name};
  }
  return std::nullopt;
}

/// The paths inside that the arguments name, with the parameter of each. The tools refuse invalid base64.
std::vector<std::pair<std::string, std::string>> namedPaths(const Json& values) {
  std::vector<std::pair<std::string, std::string>> named;
  const auto add = [&](const std::string& parameter, std::string text) {
    auto path = decodePath(std::move(text), textAt(values, parameter + "_encoding").value_or(""));
    if (path) named.emplace_back(parameter, *std::move(path));
  };
  if (auto path = textAt(values, "path")) add("path", *std::move(path));
  if (const auto source = parseFileUri(textAt(values, "source").value_or("")))
    named.emplace_back("source", source->path);
  if (const Json* paths = find(values, "paths"); paths != nullptr && paths->is_array())
    for (const Json& path : *paths) add("paths", path.get<std::string>());
  return named;
}

/// The sandbox hides these paths itself; this check is what puts the attempt on record.
std::optional<Excess> findPathExcess(const OperatorBounds& bounds, const Json& values, const policy::Policy& policy) {
  if (!(bounds.profile || bounds.fixes("filesystem.denied"))) return std::nullopt;
  for (const auto& [parameter, path] : namedPaths(values)) {
    const std::string inside = policy::normalPath(path.starts_with('/') ? path : "/workspace/" + path);
    for (const std::string& denied : policy.filesystem.denied)
      if (policy::isWithin(inside, policy::normalPath(denied)))
        return Excess{parameter, "the policy hides " + denied, "use another file"};
  }
  return std::nullopt;
}

/// The tool that shows what is at an address; null for an address that is unknown.
const Tool* toolOfResource(std::string_view uri) {
  constexpr std::string_view kOwnScheme = "caisson://";
  if (!uri.starts_with(kOwnScheme)) return nullptr;
  uri.remove_prefix(kOwnScheme.size());
  const std::size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return uri == "sandboxes" ? &kListTool : nullptr;
  const std::string_view part = uri.substr(slash + 1);
  if (part.starts_with("exec/")) return &kProcessTool;
  return part == "info" || part == "audit" ? &kInfoTool : &kReadTool;
}

}  // namespace

bool isShown(const OperatorBounds& bounds, const std::string& path) {
  return std::ranges::any_of(bounds.directories, [&](const std::string& one) { return isWithin(path, one); });
}

bool OperatorBounds::fixes(std::string_view key) const {
  if (key.empty()) return false;
  if (key == kFixedProfile) return whole || profile;
  if (key == kFixedWorkspace) return no_workspace || (workspaces && directories.size() == 1);
  if (key == kFixedEmpty) return no_workspace;
  return whole || std::ranges::find(keys, key) != keys.end();
}

bool OperatorBounds::fixesNetwork() const {
  return whole || std::ranges::any_of(keys, [](const std::string& key) { return key.starts_with(kNetworkKeys); });
}

bool OperatorBounds::mayCommitTo(const std::string& workspace) const {
  return !read_only && !no_workspace &&
         std::ranges::none_of(never_committed, [&](const std::string& one) { return isWithin(workspace, one); });
}

std::vector<std::string> OperatorBounds::neverCommittedIn(const std::string& workspace) const {
  std::vector<std::string> found;
  for (const std::string& one : never_committed)
    if (one != workspace && isWithin(one, workspace)) found.push_back(one.substr(workspace.size() + 1));
  return found;
}

bool OperatorBounds::offers(const Tool& tool) const {
  if (!tools.empty() && !tools.contains(std::string(tool.name))) return false;
  if (read_only && std::ranges::find(kWriters, &tool) != std::end(kWriters)) return false;
  if (&tool == &kNetworkTool) return !fixesNetwork();
  if (&tool != &kCommitTool) return true;
  return !no_workspace && !(workspaces && !directories.empty() && never_committed.size() == directories.size());
}

bool OperatorBounds::offers(const Parameter& parameter) const { return !fixes(parameter.fixed_by); }

std::optional<double> OperatorBounds::maxCommandSeconds() const {
  if (!policy || !(profile || fixes("resources.wall_seconds"))) return std::nullopt;
  const auto base = policy("");
  if (!base || !base->model().resources.wall_seconds) return std::nullopt;
  const double seconds = *base->model().resources.wall_seconds;
  return seconds == policy::kNoTimeLimit ? std::nullopt : std::optional(seconds);
}

std::string OperatorBounds::describe() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto base = policy ? policy("") : Result<Policy>(fail(Error{}));
  if (!base) return text;
  const policy::Policy& model = base->model();
  if (fixes(kFixedProfile)) add("the policy is " + model.name);
  if (fixes(kFixedImage)) add("the root is " + model.filesystem.root);
  if (fixes(kFixedUser) && model.isolation.user == policy::InsideUser::root) add("commands are root inside");
  if (fixesNetwork()) {
    std::string hosts;
    for (const std::string& host : model.network.allowed_hosts) hosts += " " + host;
    const bool none = model.network.mode == policy::NetworkMode::none;
    add(none ? "there is no network" : "the network reaches only" + (hosts.empty() ? " no host" : hosts));
  }
  if (no_workspace) add("workspaces start empty");
  if (read_only) add("nothing is written to the user's files");
  return text;
}

Result<std::set<std::string>> toolsWithNeeds(const std::vector<std::string>& names) {
  std::set<std::string> all;
  for (const std::string& name : names) {
    if (toolNamed(name) == nullptr) {
      std::string known;
      for (const Tool* tool : allTools()) known += (known.empty() ? "" : ", ") + std::string(tool->name);
      return fail(plainError(Stage::usage, "mcp --tools", name, "there is no such tool", "there are: " + known));
    }
    all.insert(name);
    if (name != kListTool.name) all.insert(std::string(kCreateTool.name));
    for (const auto& [tool, needs] : kNeeds)
      if (tool.name == name) all.insert(std::string(needs.name));
  }
  return all;
}

Excess notOffered(const Tool& tool) {
  return {"", "the operator of this server does not offer " + std::string(tool.name), "use another tool"};
}

std::optional<DeniedThroughLink> findDeniedThroughLink(const std::vector<std::string>& denied, const std::string& top) {
  namespace fs = std::filesystem;
  for (const std::string& entry : denied) {
    const std::string path = policy::normalPath(entry);
    for (const std::string& shown : {std::string("/workspace"), top}) {
      if (!policy::isWithin(path, shown) || path.size() <= shown.size()) continue;
      std::error_code problem;
      fs::path at = top;
      for (const fs::path& part : fs::path(path.substr(shown.size() + 1))) {
        at /= part;
        if (fs::is_symlink(fs::symlink_status(at, problem)))
          return DeniedThroughLink{entry, fs::weakly_canonical(top + path.substr(shown.size()), problem).string()};
      }
    }
  }
  return std::nullopt;
}

std::optional<Excess> denyAround(const OperatorBounds& bounds, const std::vector<std::string>& roots,
                                 const std::string& workspace, policy::Policy& policy) {
  if (workspace.empty()) return std::nullopt;
  std::vector<std::string> tops = bounds.directories;
  tops.insert(tops.end(), roots.begin(), roots.end());
  if (!bounds.project.empty()) tops.push_back(bounds.project);
  std::string& around = policy.filesystem.workspace.around;
  for (const std::string& top : tops) {
    if (isWithin(workspace, top) && !sys::holdsHome(top) && (around.empty() || isWithin(around, top))) around = top;
  }
  const std::vector<std::string> written = policy.filesystem.denied;
  for (const std::string& top : tops) {
    const bool related = policy::isWithin(workspace, top) || policy::isWithin(top, workspace);
    if (const auto found = related ? findDeniedThroughLink(written, top) : std::nullopt)
      return Excess{"workspace_path", "a symbolic link is in " + found->entry + " of " + top + ", which is denied",
                    "the operator has to deny the real path"};
    const policy::DeniedElsewhere elsewhere = policy::deniedElsewhere(written, top, workspace);
    if (!elsewhere.whole.empty())
      return Excess{"workspace_path", "the policy hides " + elsewhere.whole + " of " + top, "use another directory"};
    for (const std::string& entry : elsewhere.entries)
      if (std::ranges::find(policy.filesystem.denied, entry) == policy.filesystem.denied.end())
        policy.filesystem.denied.push_back(entry);
  }
  return std::nullopt;
}

std::optional<Excess> findExcess(const OperatorBounds& bounds, const Tool& tool, const Json& values) {
  const std::string profile = bounds.fixes(kFixedProfile) ? "" : textAt(values, "profile").value_or("");
  const auto policy = bounds.policy(profile);
  if (!policy) return std::nullopt;  // an unknown profile, which the tool reports
  for (const Parameter& parameter : tool.parameters) {
    const Json* value = find(values, parameter.name);
    if (value == nullptr) continue;
    if (auto excess = findFixedExcess(bounds, parameter, *value, policy->model())) return excess;
  }
  if (auto excess = findWorkspaceExcess(bounds, values)) return excess;
  if (auto excess = findMemoryExcess(bounds, values, *policy)) return excess;
  if (auto excess = findTimeExcess(bounds, values)) return excess;
  if (auto excess = findVariableExcess(bounds, values, policy->model())) return excess;
  return findPathExcess(bounds, values, policy->model());
}

std::optional<Excess> findResourceExcess(const OperatorBounds& bounds, std::string_view uri) {
  const Tool* tool = toolOfResource(uri);
  if (tool == nullptr) return std::nullopt;
  if (!bounds.offers(*tool)) {
    Excess excess = notOffered(*tool);
    excess.parameter = "uri";
    return excess;
  }
  const auto file = parseFileUri(uri);
  if (!file) return std::nullopt;
  auto excess = findExcess(bounds, kReadTool, {{"path", file->path}});
  if (excess) excess->parameter = "uri";
  return excess;
}

Json withoutFixed(const OperatorBounds& bounds, const Tool& tool, Json values) {
  for (const Parameter& parameter : tool.parameters)
    if (!bounds.offers(parameter) && parameter.fixed_by != kFixedWorkspace) values.erase(std::string(parameter.name));
  return values;
}

void recordExcess(std::string_view tool, const Excess& excess, const Json& arguments) {
  audit::Fields fields;
  fields.text("rule", "operator").text("tool", tool).text("parameter", excess.parameter).text("reason", excess.reason);
  if (const Json* value = find(arguments, excess.parameter)) fields.text("value", writeJson(*value).substr(0, 200));
  auto log = audit::Log::open();
  const auto recorded = log ? log->append({audit::EventType::policy_violation, audit::Severity::warn,
                                           textAt(arguments, "sandbox_id").value_or(""), fields})
                            : fail(log.error());
  if (!recorded) writeLog(LogLevel::error, "a refusal could not be recorded", {{"error", recorded.error().message()}});
}

Json refuse(const Call& call, std::string_view tool, const Excess& excess, const Json& arguments) {
  recordExcess(tool, excess, arguments);
  const std::string object = excess.parameter.empty() ? std::string(tool) : excess.parameter;
  return structuredResult(
      call,
      {{"error", (excess.parameter.empty() ? "" : "`" + excess.parameter + "`: ") + excess.reason},
       {"hint", excess.remedy},
       {"denials",
        Json::array({{{"rule", "operator"}, {"object", object}, {"operation", tool}, {"remedy", excess.remedy}}})}},
      true);
}

}  // namespace caisson::mcp
