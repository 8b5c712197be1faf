#include "plan/named_paths.h"

#include <algorithm>
#include <optional>

#include "plan/denied_paths.h"
#include "plan/filesystem.h"
#include "plan/nested_paths.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"
#include "policy/rules/secret_files.h"
#include "sys/state_home.h"

namespace caisson::plan {
namespace {

using policy::WorkspaceMode;

/// The part of `path` below `tree`, or nothing if it does not lie there.
std::optional<std::string> nameBelow(const std::string& path, const std::string& tree) {
  if (path.size() <= tree.size() || !below(path, tree)) return std::nullopt;
  return path.substr(tree == "/" ? 1 : tree.size() + 1);
}

/// The credential or history of a home that `path` is or lies in, else its last part if that looks secret, else "".
std::string homeSecretOf(const HostFacts& host, const std::string& path) {
  for (const std::string& home : host.homes) {
    for (const policy::SecretPattern& secret : policy::homeSecrets()) {
      if (below(path, home + "/" + std::string(secret.pattern))) return "~/" + std::string(secret.pattern);
    }
  }
  const std::size_t slash = path.rfind('/');
  const std::string_view above = std::string_view(path).substr(0, slash),
                         name = std::string_view(path).substr(slash + 1);
  return policy::usuallySecret(above, name) || policy::isInSecretDirectory(path) ? std::string(name) : std::string();
}

Result<void> checkNamedPath(const HostPath& path, bool writable) {
  const std::string call = std::string("open ") + (writable ? "--rw" : "--ro");
  if (!path.why_not.empty()) {
    return fail(plainError(Stage::host, call, path.requested, path.why_not, path.remedy));
  }
  if (path.sys_errno != 0) {
    return fail(sysError(Stage::host, call, path.requested, path.sys_errno,
                         "name an existing file or directory that you can read"));
  }
  if (!path.directory && !path.regular_file) {
    return fail(plainError(Stage::host, call, path.requested,
                           "it is neither a file nor a directory (sockets, pipes and devices are never handed in)",
                           "name a file or a directory"));
  }
  if (path.path == "/") {
    return fail(plainError(Stage::host, call, path.requested, "it is the whole host",
                           "name the directories the program needs"));
  }
  return {};
}

void warnOfNamedPath(const HostFacts& host, const HostPath& path, bool writable, Plan& plan) {
  if (const std::string secret = homeSecretOf(host, path.path); !secret.empty()) {
    plan.warnings.push_back(path.path + " is shown to the program, and " + secret + " usually holds keys or passwords");
  }
  if (writable) plan.warnings.push_back(path.path + " is writable directly: changes cannot be rolled back");
}

void addNamedPath(const policy::Policy& policy, const HostFacts& host, const PathRule& rule, Plan& plan) {
  const HostPath& path = *rule.path;
  plan.steps.push_back(Bind{.source = path.path,
                            .target = path.path,
                            .writable = rule.writable,
                            .executable = true,
                            .canonical = true,
                            .type = path.directory ? SourceType::directory : SourceType::file,
                            .opened = path.opened,
                            .owned = plan.identity.maps_files});
  std::vector<std::string> hidden = ownStateIn(host, path.path);
  if (!policy.filesystem.workspace.show_secrets) {
    for (std::string& name : homeSecretsIn(host, path.path)) hidden.push_back(std::move(name));
  }
  if (rule.writable) {
    for (const std::string& name : hidden) pinAbove(path.path, path.path + "/" + name, true, plan);
  }
  for (const std::string& name : hidden) plan.steps.push_back(MaskPath{path.path + "/" + name});
  if (rule.writable && path.directory) plan.written.push_back({path.path, path.opened});
}

/// Makes mount points of the directories between a writable tree and a path in it that has another rule, or is the
/// workspace.
void pinBelow(const PathRule* tree, const std::string& path, Plan& plan) {
  if (tree == nullptr || !tree->writable || tree->path->path == path) return;
  const std::string& top = tree->path->path;
  ShownTree(top, top, TreeAccess::rw, true).pinAbove(std::string_view(path).substr(top.size() + 1), plan);
}

/// A read-only mount covers one name of a file.
void noteSharedFiles(const HostFacts& host, Plan& plan) {
  std::string first;
  std::size_t count = 0;
  for (const std::string& name : host.scan.shared_files) {
    if (name.starts_with('/') && ++count == 1) first = name;
  }
  if (count == 0) return;
  plan.notices.push_back(
      "read-only files have other names (hard links), through which the program may change them: " + first +
      (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") + "; replace them by copies");
}

/// Shows a part of the workspace at its own path of the host as well, as the workspace shows it.
void addCopy(const std::string& source, const HostPath& path, bool writable, bool executable, Plan& plan) {
  plan.steps.push_back(Bind{.source = source,
                            .target = path.path,
                            .writable = writable,
                            .executable = executable,
                            .inside = true,
                            .canonical = true,
                            .type = path.directory ? SourceType::directory : SourceType::file});
}

/// Whether a tree of the host that is shown at its own path contains the workspace.
bool workspaceIsShownTwice(const HostFacts& host, const std::vector<PathRule>& rules, const Plan& plan) {
  if (deepestRule(rules, host.workspace.path) != nullptr) return true;
  return !plan.layered_root && std::ranges::any_of(host.system_directories, [&](const auto& directory) {
    return directory.second.empty() && below(host.workspace.path, directory.first);
  });
}

/// Whether `path` is a directory that a session has as its workspace: the empty one, or the copy of the landlock tier.
bool isSessionWorkspace(const std::string& own_state, const std::string& path) {
  const std::string sessions = own_state + "/sessions";
  if (!below(path, sessions) || path == sessions) return false;
  const std::size_t id = path.find('/', sessions.size() + 1);
  if (id == std::string::npos) return false;
  const std::string_view inside = std::string_view(path).substr(id + 1);
  return inside == "empty" || inside.starts_with("tier/");
}

/// An error if `shown` is in the owner's configuration, or is writable, contains it and cannot hide it. The
/// configuration names programs that caisson runs on the host, so the sandbox must not write it.
Result<void> checkOwnConfig(const HostFacts& host, const Plan& plan, const std::string& shown, bool writable) {
  if (host.own_config.empty()) return {};
  const bool inside = below(host.own_config, shown);
  const bool cannot_hide = plan.tier == policy::Tier::landlock || !host.own_config_exists;
  if (!below(shown, host.own_config) && !(writable && inside && cannot_hide)) return {};
  const bool could_exist = inside && plan.tier != policy::Tier::landlock && shown != host.own_config;
  return fail(
      plainError(Stage::host, "plan", shown, "the sandbox could change caisson's configuration: " + host.own_config,
                 could_exist ? "mkdir -p " + host.own_config + ", which is then hidden" : "show another directory"));
}

}  // namespace

std::vector<std::string> homeSecretsIn(const HostFacts& host, const std::string& tree) {
  std::vector<std::string> names;
  for (const std::string& home : host.homes) {
    for (const policy::SecretPattern& secret : policy::homeSecrets()) {
      if (auto name = nameBelow(home + "/" + std::string(secret.pattern), tree)) names.push_back(*std::move(name));
    }
  }
  return names;
}

std::vector<std::string> ownStateIn(const HostFacts& host, const std::string& tree) {
  std::vector<std::string> names;
  const std::string layers = host.own_state.empty() ? "" : sys::memoryStores(host.uid, host.own_state);
  for (const std::string* own : {&host.own_state, &host.own_config, &host.own_trees, &layers}) {
    if (auto name = nameBelow(*own, tree)) names.push_back(*std::move(name));
  }
  return names;
}

Result<void> addNamedPaths(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (auto checked = checkNamedPaths(host, plan); !checked) return checked;
  const bool has_workspace = showsWorkspace(policy, host);
  const std::vector<PathRule> rules = pathRules(host);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string& path = rules[i].path->path;
    if (has_workspace && below(path, host.workspace.path)) continue;  // mounted with it
    pinBelow(deepestRule({rules.begin(), rules.begin() + static_cast<std::ptrdiff_t>(i)}, path), path, plan);
    addNamedPath(policy, host, rules[i], plan);
  }
  noteSharedFiles(host, plan);
  if (has_workspace) pinBelow(deepestRule(rules, host.workspace.path), host.workspace.path, plan);
  return {};
}

void addOwnPaths(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan) {
  const std::string& top = host.workspace.path;
  if (!plan.workspace_shown || target == top) return;
  const std::vector<PathRule> rules = pathRules(host);
  const bool executable = policy.filesystem.workspace_exec;
  const bool whole = workspaceIsShownTwice(host, rules, plan);
  if (whole) addCopy(target, host.workspace, policy.filesystem.workspace.mode != WorkspaceMode::ro, executable, plan);
  std::string shown;
  for (const PathRule& rule : rules) {
    const std::string& path = rule.path->path;
    if (!below(path, top) || path == top) continue;
    if (workspaceHides(policy, host, target, path)) {
      const std::vector<std::string> denied = deniedBelow(policy, host, target);
      const auto contains = [&](const std::string& name) { return below(path, top + "/" + name); };
      if (!whole && std::ranges::none_of(denied, contains)) addNamedPath(policy, host, rule, plan);
    } else if (!whole && (shown.empty() || !below(path, shown))) {
      addCopy(target + path.substr(top.size()), *rule.path, rule.writable, true, plan);
      shown = path;
    }
  }
}

Result<void> checkNamedPaths(const HostFacts& host, Plan& plan) {
  for (const auto* list : {&host.read_only, &host.read_write}) {
    const bool writable = list == &host.read_write;
    for (const HostPath& path : *list) {
      if (auto checked = checkNamedPath(path, writable); !checked) return checked;
      warnOfNamedPath(host, path, writable, plan);
    }
  }
  return {};
}

void addLinkNames(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  for (const auto* list : {&host.read_only, &host.read_write}) {
    for (const HostPath& path : *list) {
      const std::string name = policy::normalPath(path.requested);
      const bool denied = std::ranges::any_of(
          policy.filesystem.denied, [&](const std::string& entry) { return below(name, policy::normalPath(entry)); });
      if (name != path.path && !denied) plan.steps.push_back(MakeSymlink{name, path.path, true});
    }
  }
}

Result<void> checkOwnState(const policy::Policy& policy, const HostFacts& host, const Plan& plan) {
  const auto check = [&](const std::string& shown, bool writable, bool is_workspace) -> Result<void> {
    if (auto checked = checkOwnConfig(host, plan, shown, writable); !checked || host.own_state.empty()) return checked;
    // The workspaces that caisson makes for sessions are shown in their sandboxes, and the directories that `caisson
    // verify` makes for its checks. All else there is the owner's: log, approvals, tools, tokens, and the metadata,
    // journals and sockets of sessions.
    const bool made_to_be_shown =
        (is_workspace && isSessionWorkspace(host.own_state, shown)) || shown.starts_with(host.own_state + "/verify-");
    const std::string layers = sys::memoryStores(host.uid, host.own_state);
    const bool private_part = (below(shown, host.own_state) && !made_to_be_shown) || below(shown, layers) ||
                              (!host.own_trees.empty() && below(shown, host.own_trees));
    const bool cannot_hide = plan.tier == policy::Tier::landlock &&
                             (below(host.own_state, shown) || below(layers, shown) || below(host.own_trees, shown));
    if (!private_part && !cannot_hide) return {};
    const bool trees = !host.own_trees.empty() && (below(shown, host.own_trees) || below(host.own_trees, shown));
    if (trees) {  // CAISSON_HOME does not move it
      return fail(plainError(Stage::host, "plan", shown, "the sandbox would see caisson's own state: " + host.own_trees,
                             "show another directory, or set XDG_DATA_HOME to one outside of it"));
    }
    return fail(plainError(Stage::host, "plan", shown, "the sandbox would see caisson's own state: " + host.own_state,
                           "show another directory, or set CAISSON_HOME to one outside of it"));
  };
  if (plan.workspace_shown) {
    const bool direct = policy.filesystem.workspace.mode == policy::WorkspaceMode::rw;
    if (auto checked = check(host.workspace.path, direct, true); !checked) return checked;
  }
  for (const auto* list : {&host.read_only, &host.read_write}) {
    for (const HostPath& path : *list) {
      if (auto checked = check(path.path, list == &host.read_write, false); !checked) return checked;
    }
  }
  return {};
}

}  // namespace caisson::plan
