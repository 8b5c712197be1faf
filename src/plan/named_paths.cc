#include "plan/named_paths.h"

#include <algorithm>
#include <optional>

#include "plan/denied_paths.h"
#include "plan/filesystem.h"
#include "plan/image_root.h"
#include "plan/nested_paths.h"
#include "plan/searched_tree.h"
#include "plan/system_paths.h"
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

/// The secret of the workspace that `path` is or lies in, else "".
std::string workspaceSecretOf(const HostFacts& host, const std::string& path) {
  const auto holds = [&](const std::string& name) { return below(path, host.workspace.path + "/" + name); };
  const auto found = std::ranges::find_if(host.scan.secrets, holds);
  return found != host.scan.secrets.end() ? *found : std::string();
}

void warnOfNamedPath(const HostFacts& host, const HostPath& path, bool writable, Plan& plan) {
  std::string secret = homeSecretOf(host, path.path);
  if (secret.empty()) secret = workspaceSecretOf(host, path.path);
  if (!secret.empty()) {
    plan.warnings.push_back(path.path + " is shown to the program, and " + secret + " usually holds keys or passwords");
  }
  if (writable) plan.warnings.push_back(path.path + " is writable directly: changes cannot be rolled back");
}

/// What stays hidden in a named path, relative to it.
std::vector<std::string> hiddenIn(const policy::Policy& policy, const HostFacts& host, const std::string& path,
                                  const WorkspaceScan& scan) {
  std::vector<std::string> hidden = scan.hidden();
  if (!policy.filesystem.workspace.show_secrets) {
    const std::vector<std::string> shown = shownFilesAt(policy.filesystem.workspace, path);
    for (std::string& name : homeSecretsIn(host, path)) {
      if (std::ranges::find(shown, name) == shown.end()) hidden.push_back(std::move(name));
    }
  }
  for (std::string& name : ownStateIn(host, path)) hidden.push_back(std::move(name));
  for (const std::string& match : host.denied_matches) {
    if (auto name = nameBelow(host.workspace.path + "/" + match, path)) hidden.push_back(*std::move(name));
  }
  std::ranges::sort(hidden);
  hidden.erase(std::ranges::unique(hidden).begin(), hidden.end());
  return hidden;
}

/// An error if nothing of a named directory may be shown.
Result<void> checkSearched(const std::string& path, const WorkspaceScan& scan) {
  const auto whole = std::ranges::find(scan.covered, kWholeWorkspace, &WorkspaceScan::Covered::path);
  if (whole == scan.covered.end()) return {};
  return fail(plainError(Stage::host, "search", path, "it cannot be searched for secrets: " + whole->reason,
                         "name a directory in it that can, or show everything with --show-secrets"));
}

/// Protects what the host would execute in a named directory that is written directly.
Result<void> guardNamed(const policy::Policy& policy, const HostPath& path, const NamedTree& searched, Plan& plan) {
  if (policy.filesystem.workspace.allow_exec_config) {
    plan.warnings.push_back("the program may change files in " + path.path +
                            " that the host would execute (--allow-exec-config)");
    return {};
  }
  if (auto checked = checkNotExecuted(path.path, searched.scan); !checked) return checked;
  if (auto checked = checkMasks(path.path, searched.scan.protected_paths.size()); !checked) return checked;
  ShownTree tree(path.path, path.path, TreeAccess::rw, true);
  protectFiles(searched.scan, tree, plan);
  plan.guarded.push_back(guardOf(path, policy, searched.scan, searched.writer, false));
  return {};
}

void noteNamed(const std::string& path, const WorkspaceScan& scan, Plan& plan) {
  noteHidden(path, scan, plan);
  noteDeniedNames(path, scan, plan);
  noteCovered(path, scan, plan);
  for (const std::string& name : scan.secrets) plan.masked_secrets.push_back(path + "/" + name);
  for (const auto& [name, kind] : scan.secret_kinds) plan.secret_kinds.emplace(path + "/" + name, kind);
}

Result<void> addNamedPath(const policy::Policy& policy, const HostFacts& host, const PathRule& rule, Plan& plan) {
  const HostPath& path = *rule.path;
  const auto found = host.named_trees.find(path.path);
  const NamedTree searched = found != host.named_trees.end() ? found->second : NamedTree{};
  if (auto checked = checkSearched(path.path, searched.scan); !checked) return checked;
  plan.steps.push_back(Bind{.source = path.path,
                            .target = path.path,
                            .writable = rule.writable,
                            .executable = true,
                            .canonical = true,
                            .type = path.directory ? SourceType::directory : SourceType::file,
                            .opened = path.opened,
                            .owned = plan.identity.maps_files});
  const std::vector<std::string> hidden = hiddenIn(policy, host, path.path, searched.scan);
  if (auto checked = checkMasks(path.path, searched.scan.hidden().size()); !checked) return checked;
  if (rule.writable && path.directory) {
    if (auto guarded = guardNamed(policy, path, searched, plan); !guarded) return guarded;
    for (const std::string& name : hidden) pinAbove(path.path, path.path + "/" + name, true, plan);
    for (const ReplacedFile& file : searched.scan.redacted)
      pinAbove(path.path, path.path + "/" + file.path, true, plan);
  }
  for (const std::string& name : hidden) plan.steps.push_back(MaskPath{path.path + "/" + name});
  addRedacted(searched.scan.redacted, path.path, plan);
  noteNamed(path.path, searched.scan, plan);
  if (rule.writable && path.directory) plan.written.push_back({path.path, path.opened});
  return {};
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

/// Shows what the workspace has of toolchains, which are mounted at their own paths, as the workspace shows it.
void addToolchainsOf(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan) {
  const std::string& top = host.workspace.path;
  for (const Toolchain& toolchain : host.toolchains) {
    for (const std::string& path : toolchain.shown) {
      if (!below(path, top) || path == top) continue;
      if (workspaceHides(policy, host, target, path)) {
        plan.steps.push_back(MaskPath{path});
        continue;
      }
      plan.steps.push_back(Bind{.source = target + path.substr(top.size()),
                                .target = path,
                                .executable = true,
                                .inside = true,
                                .canonical = true});
    }
  }
}

/// Whether a tree of the host that is shown at its own path contains the workspace.
bool workspaceIsShownTwice(const HostFacts& host, const std::vector<PathRule>& rules, const Plan& plan) {
  if (deepestRule(rules, host.workspace.path) != nullptr) return true;
  const auto holds = [&](const std::string& directory) { return below(host.workspace.path, directory); };
  if (std::ranges::any_of(host.toolchains, [&](const Toolchain& one) { return std::ranges::any_of(one.shown, holds); }))
    return true;
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

/// Whether a path of the host is shown with its system or a toolchain.
bool isShownWithSystem(const HostFacts& host, const std::string& path) {
  const auto holds = [&](const std::string& directory) { return below(path, directory); };
  return std::ranges::any_of(kSystemDirectories, [&](std::string_view one) { return below(path, one); }) ||
         below(path, "/etc") || std::ranges::any_of(host.toolchains, [&](const Toolchain& one) {
           return std::ranges::any_of(one.shown, holds);
         });
}

/// An error if a writable tree holds one of caisson's own places that does not exist yet, or a link that leads to one:
/// the sandbox could make it, or replace the link.
Result<void> checkCannotBeMade(const HostFacts& host, const std::string& shown) {
  const auto in_tree = [&](const std::string& own) { return below(own, shown); };
  if (const auto link = std::ranges::find_if(host.own_links, in_tree); link != host.own_links.end()) {
    return fail(plainError(Stage::host, "plan", shown,
                           "the sandbox could redirect " + *link + ", which leads to caisson's configuration or state",
                           "show another directory, or replace the link by the directory"));
  }
  const auto missing = std::ranges::find_if(host.own_missing, in_tree);
  if (missing == host.own_missing.end()) return {};
  const bool config = *missing == host.own_config;
  return fail(plainError(
      Stage::host, "plan", shown,
      "the sandbox could change caisson's " + std::string(config ? "configuration: " : "own state: ") + *missing,
      *missing != shown ? "mkdir -p " + *missing + ", which is then hidden" : "show another directory"));
}

/// An error if `shown` is in the owner's configuration, or is writable, contains it and cannot hide it. The
/// configuration names programs that caisson runs on the host, so the sandbox must not write it.
Result<void> checkOwnConfig(const HostFacts& host, const Plan& plan, const std::string& shown, bool writable) {
  const bool landlock = plan.tier == policy::Tier::landlock;  // hides nothing
  const bool reaches = !host.own_config.empty() &&
                       (below(shown, host.own_config) || (writable && landlock && below(host.own_config, shown)));
  if (reaches) {
    return fail(plainError(Stage::host, "plan", shown,
                           "the sandbox could change caisson's configuration: " + host.own_config,
                           "show another directory"));
  }
  return writable ? checkCannotBeMade(host, shown) : Result<void>{};
}

}  // namespace

bool isShownAnyway(const policy::Policy& policy, const HostFacts& host, const std::string& path) {
  // A root caller's named paths show files of their owner as the sandbox user's.
  if (hasOtherRoot(policy) || policy.process.allowed_executables || host.uid == 0) return false;
  return std::ranges::any_of(kSystemDirectories, [&](std::string_view one) { return below(path, one); });
}

bool isNamedSecret(const HostFacts& host, const std::string& path) { return !homeSecretOf(host, path).empty(); }

std::vector<std::string> homeSecretsIn(const HostFacts& host, const std::string& tree) {
  std::vector<std::string> names;
  for (const std::string& home : host.homes) {
    for (const policy::SecretPattern& secret : policy::homeSecrets()) {
      if (auto name = nameBelow(home + "/" + std::string(secret.pattern), tree)) names.push_back(*std::move(name));
    }
  }
  return names;
}

bool isOwnWorkspace(const std::string& own_state, const std::string& path) {
  return isSessionWorkspace(own_state, path) || path.starts_with(own_state + "/verify-");
}

std::vector<std::string> ownPlaces(const HostFacts& host) {
  std::vector<std::string> places = host.own_mounts;
  if (!host.own_state.empty()) places.push_back(sys::memoryStores(host.uid, host.own_state));
  for (const std::string* own : {&host.own_state, &host.own_default_state, &host.own_config})
    if (!own->empty()) places.push_back(*own);
  return places;
}

std::vector<std::string> ownStateIn(const HostFacts& host, const std::string& tree) {
  std::vector<std::string> names;
  for (const std::string& own : ownPlaces(host)) {
    if (auto name = nameBelow(own, tree)) names.push_back(*std::move(name));
  }
  return names;
}

void maskOwnMounts(const HostFacts& host, Plan& plan) {
  for (const std::string& name : host.own_mounts) {
    if (plan.host_view || isShownWithSystem(host, name)) plan.steps.push_back(MaskPath{name});
  }
}

Result<void> addNamedPaths(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (auto checked = checkNamedPaths(host, plan); !checked) return checked;
  const bool has_workspace = showsWorkspace(policy, host);
  const std::vector<PathRule> rules = pathRules(host);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string& path = rules[i].path->path;
    if (has_workspace && below(path, host.workspace.path)) continue;  // mounted with it
    pinBelow(deepestRule({rules.begin(), rules.begin() + static_cast<std::ptrdiff_t>(i)}, path), path, plan);
    if (auto added = addNamedPath(policy, host, rules[i], plan); !added) return added;
  }
  noteSharedFiles(host, plan);
  if (has_workspace) pinBelow(deepestRule(rules, host.workspace.path), host.workspace.path, plan);
  return {};
}

Result<void> addOwnPaths(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan) {
  const std::string& top = host.workspace.path;
  if (!plan.workspace_shown || target == top) return {};
  const std::vector<PathRule> rules = pathRules(host);
  const bool executable = policy.filesystem.workspace_exec;
  const bool whole = workspaceIsShownTwice(host, rules, plan);
  for (const std::string& name : namesInRoot(host, top)) {
    HostPath in_root = host.workspace;
    in_root.path = name;
    addCopy(target, in_root, policy.filesystem.workspace.mode != WorkspaceMode::ro, executable, plan);
  }
  if (whole) addCopy(target, host.workspace, policy.filesystem.workspace.mode != WorkspaceMode::ro, executable, plan);
  if (!whole) addToolchainsOf(policy, host, target, plan);
  std::string shown;
  for (const PathRule& rule : rules) {
    const std::string& path = rule.path->path;
    if (!below(path, top) || path == top) continue;
    if (workspaceHides(policy, host, target, path)) {
      std::vector<std::string> denied = deniedBelow(policy, host, target);
      denied.insert(denied.end(), host.denied_matches.begin(), host.denied_matches.end());
      const auto contains = [&](const std::string& name) { return below(path, top + "/" + name); };
      if (whole || std::ranges::any_of(denied, contains)) continue;
      if (auto added = addNamedPath(policy, host, rule, plan); !added) return added;
    } else if (!whole && (shown.empty() || !below(path, shown))) {
      addCopy(target + path.substr(top.size()), *rule.path, rule.writable, true, plan);
      shown = path;
    }
  }
  return {};
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
  const std::string layers = host.own_state.empty() ? "" : sys::memoryStores(host.uid, host.own_state);
  const bool landlock = plan.tier == policy::Tier::landlock;
  const auto check = [&](const std::string& shown, bool writable, bool is_workspace) -> Result<void> {
    if (auto checked = checkOwnConfig(host, plan, shown, writable); !checked) return checked;
    // The workspaces that caisson makes for sessions are shown in their sandboxes, and the directories that `caisson
    // verify` makes for its checks. All else there is the owner's: log, approvals, tools, tokens, and the metadata,
    // journals and sockets of sessions.
    const bool made_to_be_shown =
        !host.own_state.empty() &&
        ((is_workspace && isSessionWorkspace(host.own_state, shown)) || shown.starts_with(host.own_state + "/verify-"));
    // No mask hides what is shown as a whole, and the landlock tier hides nothing.
    const auto reveals = [&](const std::string& own) {
      return !own.empty() && ((below(shown, own) && !made_to_be_shown) || (landlock && below(own, shown)));
    };
    if (const auto name = std::ranges::find_if(host.own_mounts, reveals); name != host.own_mounts.end()) {
      return fail(plainError(Stage::host, "plan", shown,
                             "the sandbox would see caisson's own state or configuration, mounted at " + *name,
                             "show another directory, or unmount " + *name + ", unless it was once a CAISSON_HOME"));
    }
    if (reveals(host.own_default_state)) {  // CAISSON_HOME does not move it
      return fail(plainError(Stage::host, "plan", shown,
                             "the sandbox would see caisson's own state: " + host.own_default_state,
                             "show another directory, or set XDG_DATA_HOME to one outside of it"));
    }
    if (!reveals(host.own_state) && !reveals(layers)) return {};
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
  const auto with_system = [&](const std::string& name) { return isShownWithSystem(host, name); };
  if (const auto name = std::ranges::find_if(host.own_mounts, with_system); landlock && name != host.own_mounts.end()) {
    return fail(plainError(Stage::host, "plan", *name, "the sandbox would see caisson's own state or configuration",
                           "unmount it: the landlock tier can hide nothing"));
  }
  return {};
}

}  // namespace caisson::plan
