#include "plan/workspace.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "plan/denied_paths.h"
#include "plan/filesystem.h"
#include "plan/named_paths.h"
#include "plan/nested_paths.h"
#include "plan/searched_tree.h"
#include "plan/system_paths.h"
#include "policy/decode/syntax.h"

namespace caisson::plan {
namespace {

using policy::WorkspaceMode;

constexpr std::uint64_t kOverlayBytes = 1 * policy::kGiB;
/// The names sorted, without repetition, and without what lies below another one: a whiteout hides all of that already.
std::vector<std::string> outermost(std::vector<std::string> names) {
  // A directory comes directly before what is in it.
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  std::ranges::sort(names, [&](const std::string& one, const std::string& other) {
    return std::ranges::lexicographical_compare(one, other, {}, rank, rank);
  });
  std::vector<std::string> result;
  for (std::string& name : names) {
    if (result.empty() || !below(name, result.back())) result.push_back(std::move(name));
  }
  return result;
}

std::vector<std::string> hiddenIn(const policy::Policy& policy, const HostFacts& host) {
  std::vector<std::string> hidden;
  for (std::string& own : ownStateIn(host, host.workspace.path)) hidden.push_back(std::move(own));
  for (const WorkspaceScan::Covered& one : host.scan.covered) hidden.push_back(one.path);
  hidden.insert(hidden.end(), host.scan.denied_names.begin(), host.scan.denied_names.end());
  if (policy.filesystem.workspace.show_secrets) return hidden;
  hidden.insert(hidden.end(), host.scan.secrets.begin(), host.scan.secrets.end());
  for (std::string& name : homeSecretsIn(host, host.workspace.path)) hidden.push_back(std::move(name));
  const std::vector<std::string> shown = shownFiles(policy.filesystem.workspace, host.workspace.path);
  const std::vector<std::string> own = ownStateIn(host, host.workspace.path);
  std::erase_if(hidden, [&](const std::string& name) {
    return std::ranges::find(shown, name) != shown.end() && std::ranges::find(own, name) == own.end();
  });
  return hidden;
}

/// Git configurations to show without their credentials, except those that are hidden anyway.
std::vector<ReplacedFile> redactedIn(const policy::Policy& policy, const HostFacts& host,
                                     const std::vector<std::string>& hidden) {
  std::vector<ReplacedFile> files;
  if (policy.filesystem.workspace.show_secrets) return files;
  for (const ReplacedFile& file : host.scan.redacted) {
    const auto hides = [&](const std::string& name) { return below(file.path, name); };
    if (std::ranges::none_of(hidden, hides)) files.push_back(file);
  }
  return files;
}

/// A part of the workspace that is written directly, while the rest is not.
void guardPart(const policy::Policy& policy, const HostFacts& host, const PathRule& rule, Plan& plan) {
  const auto searched = host.named_trees.find(rule.path->path);
  if (!rule.writable || searched == host.named_trees.end()) return;
  plan.guarded.push_back(guardOf(*rule.path, policy, searched->second.scan, searched->second.writer, false));
}

/// An error if such a part may not be written.
Result<void> checkParts(const policy::Policy& policy, const HostFacts& host) {
  if (policy.filesystem.workspace.allow_exec_config) return {};
  for (const PathRule& rule : pathRules(host)) {
    const auto searched = host.named_trees.find(rule.path->path);
    if (!rule.writable || !below(rule.path->path, host.workspace.path) || searched == host.named_trees.end()) continue;
    if (auto checked = checkNotExecuted(rule.path->path, searched->second.scan); !checked) return checked;
  }
  return {};
}

/// Gives the paths of the workspace that the policy names the access of their rules.
void addRules(const policy::Policy& policy, const HostFacts& host, const std::string& target, ShownTree& tree,
              Plan& plan) {
  const std::string& top = host.workspace.path;
  for (const PathRule& rule : pathRules(host)) {
    const std::string& path = rule.path->path;
    if (!below(path, top) || (path != top && workspaceHides(policy, host, target, path))) continue;
    if (rule.writable && path == top && tree.accessAt("") != TreeAccess::rw) {
      plan.warnings.push_back(path + " is the workspace, whose mode is stricter than --rw: use --workspace DIR:rw");
    }
    tree.add(rule, plan);
    guardPart(policy, host, rule, plan);
  }
}

/// Whether the overlay's changes are in memory. Before Linux 6.6 no tmpfs can hold them; then `prefer_disk` means disk,
/// and the launch fails with what the disk lacks.
bool keepsOverlayInMemory(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  switch (policy.filesystem.overlay_store) {
    case policy::OverlayStore::automatic: return host.tmpfs_user_xattrs;
    case policy::OverlayStore::memory: return true;
    case policy::OverlayStore::disk: return false;
    case policy::OverlayStore::prefer_disk: break;
  }
  // No layer of an overlay may lie in another one.
  const bool inside = !host.own_state.empty() && below(host.own_state, host.workspace.path);
  const std::string why = inside ? host.own_state + " lies in the workspace" : host.state_disk.why_no_overlay;
  if (why.empty() || !host.tmpfs_user_xattrs) return false;
  plan.warnings.push_back("changes to the workspace are kept in memory and limited by resources.memory (" + why + ")");
  return true;
}

void addOverlay(const policy::Policy& policy, const HostFacts& host, const std::string& target,
                std::vector<std::string> hidden, Plan& plan) {
  const bool memory = keepsOverlayInMemory(policy, host, plan);
  for (std::string& path : deniedBelow(policy, host, target)) hidden.push_back(std::move(path));
  std::vector<std::string> whiteouts = outermost(std::move(hidden));
  plan.steps.push_back(MountOverlay{.lower = host.workspace.path,
                                    .opened = host.workspace.opened,
                                    .target = target,
                                    .whiteouts = whiteouts,
                                    .replaced = redactedIn(policy, host, whiteouts),
                                    .bytes = policy.filesystem.max_total_size.value_or(kOverlayBytes),
                                    .inodes = policy.filesystem.max_inodes.value_or(kWorkspaceInodes),
                                    .executable = policy.filesystem.workspace_exec,
                                    .on_disk = !memory,
                                    .owned = plan.identity.maps_files});
  plan.workspace_overlay = true;
  plan.layers["workspace"] = "overlay of " + host.workspace.path + ", changes are discarded at the end";
}

/// Hides names where the workspace shows the host's files directly, below an overlay that hides them elsewhere.
void hideInDirectParts(const std::vector<std::string>& hidden, const std::vector<ReplacedFile>& redacted,
                       const ShownTree& tree, const std::string& target, Plan& plan) {
  for (const std::string& name : hidden) {
    if (tree.isDirect(name)) plan.steps.push_back(MaskPath{target + "/" + name});
  }
  std::vector<ReplacedFile> direct;
  std::ranges::copy_if(redacted, std::back_inserter(direct),
                       [&](const ReplacedFile& file) { return tree.isDirect(file.path); });
  addRedacted(direct, target, plan);
}

/// Adds a read-only workspace in which names are hidden, as an overlay without an upper layer: a mask mounted over a
/// file is gone when the host renames another file over it, a whiteout is not. False, and nothing added: nothing is
/// hidden, or no overlay works.
bool addMasked(const policy::Policy& policy, const HostFacts& host, const std::string& target,
               std::vector<std::string> hidden, Plan& plan) {
  for (std::string& path : deniedBelow(policy, host, target)) hidden.push_back(std::move(path));
  std::vector<std::string> whiteouts = outermost(std::move(hidden));
  std::vector<ReplacedFile> replaced = redactedIn(policy, host, whiteouts);
  const bool has_overlay = host.kernel_major > 5 || (host.kernel_major == 5 && host.kernel_minor >= 11);
  if ((whiteouts.empty() && replaced.empty()) || host.mounts_below || !has_overlay) return false;
  constexpr std::uint64_t kMaskBytes = 16 * policy::kMiB;
  std::uint64_t inodes = 100'000;
  for (const std::string& name : whiteouts) inodes += 1 + static_cast<std::uint64_t>(std::ranges::count(name, '/'));
  plan.steps.push_back(MountOverlay{.lower = host.workspace.path,
                                    .opened = host.workspace.opened,
                                    .target = target,
                                    .whiteouts = std::move(whiteouts),
                                    .replaced = std::move(replaced),
                                    .read_only = true,
                                    .bytes = kMaskBytes,
                                    .inodes = inodes,
                                    .executable = policy.filesystem.workspace_exec,
                                    .owned = plan.identity.maps_files});
  plan.workspace_masked = true;
  plan.layers["workspace"] = "read-only " + host.workspace.path;
  return true;
}

/// Rules for paths of a workspace that is an overlay, with or without changes.
Result<void> addRulesOverLayer(const policy::Policy& policy, const HostFacts& host, const std::string& target,
                               const std::vector<std::string>& hidden, ShownTree& tree, Plan& plan) {
  if (auto checked = checkParts(policy, host); !checked) return checked;
  addRules(policy, host, target, tree, plan);
  if (!policy.filesystem.workspace.allow_exec_config) {
    if (auto checked = checkNotExecuted(host.workspace.path, host.scan); !checked) return checked;
    protectFiles(host.scan, tree, plan);
  }
  hideInDirectParts(hidden, redactedIn(policy, host, hidden), tree, target, plan);
  if (tree.accessAt("") == TreeAccess::ro) plan.layers["workspace"] = "read-only " + host.workspace.path;
  return {};
}

Result<void> addDirect(const policy::Policy& policy, const HostFacts& host, const std::string& target,
                       const std::vector<std::string>& hidden, ShownTree& tree, Plan& plan) {
  const bool writable = tree.accessAt("") == TreeAccess::rw;
  const bool guards = !policy.filesystem.workspace.allow_exec_config;
  plan.steps.push_back(Bind{.source = host.workspace.path,
                            .target = target,
                            .writable = writable,
                            .executable = policy.filesystem.workspace_exec,
                            .canonical = true,
                            .opened = host.workspace.opened,
                            .owned = plan.identity.maps_files});
  if (writable) plan.written.push_back({host.workspace.path, host.workspace.opened});
  if (writable && guards) {
    if (auto checked = checkNotExecuted(host.workspace.path, host.scan); !checked) return checked;
    const std::size_t masks = host.scan.protected_paths.size() + hidden.size();
    if (auto checked = checkMasks(host.workspace.path, masks); !checked) return checked;
  }
  addRules(policy, host, target, tree, plan);
  if (writable && !guards) {
    plan.warnings.emplace_back("the program may change files that the host would execute (--allow-exec-config)");
  } else if (writable) {
    plan.guarded.push_back(guardOf(host.workspace, policy, host.scan, host.writer, true));
  }
  if (guards) protectFiles(host.scan, tree, plan);
  const std::vector<ReplacedFile> redacted = redactedIn(policy, host, hidden);
  if (writable) {
    for (const std::string& name : hidden)
      pinAbove(target, target + "/" + name, policy.filesystem.workspace_exec, plan);
    for (const ReplacedFile& file : redacted)
      pinAbove(target, target + "/" + file.path, policy.filesystem.workspace_exec, plan);
  }
  for (const std::string& name : hidden) plan.steps.push_back(MaskPath{target + "/" + name});
  addRedacted(redacted, target, plan);
  plan.layers["workspace"] = (writable ? "read-write " : "read-only ") + host.workspace.path;
  // The audit log stores this text, so the exception is on record.
  if (writable && !guards) plan.layers["workspace"] += ", with files that the host would execute";
  if (writable) plan.warnings.emplace_back(kNoRollback);
  return {};
}

/// Makes mount points of the directories between a tmpfs and the workspace, which then cannot be renamed. Otherwise a
/// payload could put another directory in the place of one, and masks that are mounted later would go there.
void pinParents(const policy::Policy& policy, const std::string& target, Plan& plan) {
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    const std::string top = policy::normalPath(tmpfs.path);
    if (!below(target, top) || target == top) continue;
    for (std::size_t slash = target.find('/', top.size() + 1); slash != std::string::npos;
         slash = target.find('/', slash + 1)) {
      const std::string parent = target.substr(0, slash);
      plan.steps.push_back(MakeDirectory{parent});
      plan.steps.push_back(
          Bind{.source = parent, .target = parent, .writable = true, .executable = tmpfs.exec, .inside = true});
    }
  }
}

void noteScan(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!policy.filesystem.workspace.show_secrets) {
    plan.masked_secrets.insert(plan.masked_secrets.begin(), host.scan.secrets.begin(), host.scan.secrets.end());
    plan.secret_kinds.insert(host.scan.secret_kinds.begin(), host.scan.secret_kinds.end());
    noteHidden("", host.scan, plan);
  }
  noteDeniedNames("", host.scan, plan);
  noteCovered("", host.scan, plan);
  const std::vector<std::string> shown = shownFiles(policy.filesystem.workspace, host.workspace.path);
  const std::vector<std::string> hidden = shown.empty() ? shown : hiddenIn(policy, host);
  for (const std::string& path : shown) {
    const bool stays = std::ranges::any_of(hidden, [&](const std::string& name) { return below(path, name); });
    plan.warnings.push_back(path + (stays ? " stays hidden with its directory, also with --show-file"
                                          : " is shown to the program, also if it holds a secret (--show-file)"));
  }
}

/// The audit log stores this text, so that what is shown is on record.
void recordShown(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const policy::Workspace& workspace = policy.filesystem.workspace;
  const std::vector<std::string> shown = shownFiles(workspace, host.workspace.path);
  if (workspace.show_secrets) {
    plan.layers["workspace"] += ", with secret files";
  } else if (!shown.empty()) {
    plan.layers["workspace"] += ", with the secret files " + listedPaths(shown, shown.size());
  }
}

/// An error if nothing of the workspace may be shown.
Result<void> checkSearched(const HostFacts& host) {
  const auto whole = std::ranges::find(host.scan.covered, kWholeWorkspace, &WorkspaceScan::Covered::path);
  if (whole == host.scan.covered.end()) return {};
  return fail(plainError(Stage::host, "search workspace", host.workspace.path,
                         "it cannot be searched for secrets: " + whole->reason,
                         "use a directory in it that can, or show everything with --show-secrets"));
}

}  // namespace

bool below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

bool showsWorkspace(const policy::Policy& policy, const HostFacts& host) {
  return policy.filesystem.workspace.mode != WorkspaceMode::none && !currentDirectoryIsTooBroad(policy, host) &&
         host.workspace.sys_errno == 0 && host.workspace.directory && host.workspace.path != "/";
}

std::vector<std::string> hiddenInWorkspace(const policy::Policy& policy, const HostFacts& host) {
  std::vector<std::string> hidden = hiddenIn(policy, host);
  for (const ReplacedFile& file : redactedIn(policy, host, hidden)) hidden.push_back(file.path);
  return hidden;
}

bool workspaceHides(const policy::Policy& policy, const HostFacts& host, const std::string& target,
                    const std::string& path) {
  std::vector<std::string> hidden = hiddenIn(policy, host);
  for (std::string& name : deniedBelow(policy, host, target)) hidden.push_back(std::move(name));
  hidden.insert(hidden.end(), host.denied_matches.begin(), host.denied_matches.end());
  return std::ranges::any_of(hidden,
                             [&](const std::string& name) { return below(path, host.workspace.path + "/" + name); });
}

std::vector<std::string> shownFilesAt(const policy::Workspace& workspace, const std::string& directory) {
  std::vector<std::string> shown;
  for (const std::string& entry : workspace.show_files) {
    const std::string path = policy::normalPath(entry);
    if (path.size() > directory.size() && below(path, directory)) shown.push_back(path.substr(directory.size() + 1));
  }
  return shown;
}

std::vector<std::string> shownFiles(const policy::Workspace& workspace, const std::string& directory) {
  std::vector<std::string> shown = shownFilesAt(workspace, directory);
  for (std::string& inside : shownFilesAt(workspace, std::string(kWorkspace))) shown.push_back(std::move(inside));
  return shown;
}

bool holdsHome(const HostFacts& host, const std::string& path) {
  if (path == "/" || path == "/home" || path == "/root") return true;
  if (std::any_of(host.homes.begin(), host.homes.end(), [&](const std::string& home) { return below(home, path); })) {
    return true;
  }
  return path.starts_with("/home/") && path.find('/', 6) == std::string::npos;  // another user's
}

Result<void> checkWorkspace(const HostFacts& host) {
  const HostPath& workspace = host.workspace;
  if (!workspace.why_not.empty()) {
    return fail(plainError(Stage::host, "open workspace", workspace.requested, workspace.why_not, workspace.remedy));
  }
  if (workspace.sys_errno == ENOENT && workspace.requested == ".") {
    return fail(plainError(Stage::host, "open workspace", "the current directory", "it was removed",
                           "go to a directory that exists, or name one with --workspace DIR"));
  }
  if (workspace.sys_errno != 0) {
    return fail(sysError(Stage::host, "open workspace", workspace.requested, workspace.sys_errno,
                         "give an existing directory you can enter: --workspace DIR, or --workspace :none"));
  }
  if (!workspace.directory) {
    return fail(plainError(Stage::host, "open workspace", workspace.requested, "it is not a directory",
                           "give a directory, or show one file with --ro FILE"));
  }
  if (workspace.path == "/") {
    return fail(plainError(Stage::host, "open workspace", workspace.requested, "it is the whole host",
                           "name the directory the program works in"));
  }
  return {};
}

bool currentDirectoryIsTooBroad(const policy::Policy& policy, const HostFacts& host) {
  return policy.filesystem.workspace.path.empty() && host.workspace.sys_errno == 0 &&
         holdsHome(host, host.workspace.path);
}

bool declineCurrentDirectory(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!currentDirectoryIsTooBroad(policy, host)) return false;
  plan.notices.push_back("the current directory " + host.workspace.path +
                         " is a home directory or above one, so the sandbox has no workspace; name one with "
                         "--workspace DIR");
  return true;
}

Result<std::string> workspaceTarget(const policy::Policy& policy, const HostFacts& host) {
  const policy::Workspace& workspace = policy.filesystem.workspace;
  const std::string& path = host.workspace.path;
  if (!workspace.same_path || !showsWorkspace(policy, host)) return std::string(kWorkspace);
  const auto refuse = [&](const std::string& reason) {
    return fail(plainError(Stage::host, "plan", path, reason, "leave out --same-path: it is then at /workspace"));
  };
  const auto isIn = [&](std::string_view directory) { return below(path, directory); };
  for (const std::string_view top : {"/etc", "/dev", "/proc", "/sys", "/run", "/boot"}) {
    if (isIn(top)) return refuse("it cannot be shown at its own path: the sandbox has its own " + std::string(top));
  }
  if (std::ranges::any_of(kSystemDirectories, isIn)) {
    return refuse("it cannot be shown at its own path: it lies in a directory of the system");
  }
  for (const std::string_view top : {"/home", "/root", "/var", "/var/tmp", "/tmp"}) {
    if (path == top) return refuse("it cannot be shown at its own path: it would cover the sandbox's own " + path);
  }
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    if (below(policy::normalPath(tmpfs.path), path)) {
      return refuse("it cannot be shown at its own path: it would cover " + tmpfs.path + " of the sandbox");
    }
  }
  return path;
}

Result<std::string> directoryInside(const Plan& plan, std::string_view requested) {
  if (requested.starts_with('/')) return policy::normalPath(requested);
  if (!plan.workspace_target.empty()) return policy::normalPath(plan.workspace_target + "/" + std::string(requested));
  if (plan.level == policy::Level::none)
    return policy::normalPath(plan.working_directory + "/" + std::string(requested));
  return fail(plainError(Stage::plan, "plan", requested,
                         "a relative working directory is in the workspace, and the sandbox has none",
                         "name a workspace with --workspace DIR, or an absolute directory inside"));
}

Result<void> addWorkspace(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan) {
  const policy::Workspace& workspace = policy.filesystem.workspace;
  const WorkspaceMode mode = workspace.mode;
  if (mode == WorkspaceMode::none || declineCurrentDirectory(policy, host, plan)) {
    plan.layers["workspace"] = "none";
    return {};
  }
  if (auto checked = checkWorkspace(host); !checked) return checked;
  if (auto checked = checkSearched(host); !checked) return checked;
  std::vector<std::string> hidden = hiddenIn(policy, host);
  if (mode != WorkspaceMode::rw) {  // there, addDenied() masks them
    hidden.insert(hidden.end(), host.denied_matches.begin(), host.denied_matches.end());
  }
  noteScan(policy, host, plan);
  noteUnmatched(policy, host, plan);
  pinParents(policy, target, plan);
  plan.working_directory = target;
  plan.workspace_target = target;
  plan.workspace_shown = true;
  if ((!workspace.show_secrets || !deniedPatterns(policy).empty()) && mode != WorkspaceMode::rw &&
      plan.namespaces.mount) {
    plan.watched = {.path = host.workspace.path, .opened = host.workspace.opened, .target = target, .hidden = hidden};
    std::vector<std::string>& names = plan.watched->hidden;
    for (std::string& path : deniedBelow(policy, host, target)) names.push_back(std::move(path));
    for (const ReplacedFile& file : host.scan.redacted) names.push_back(file.path);
  }
  const auto is_workspace = [&](const HostPath& path) { return path.path == host.workspace.path; };
  const bool named_read_only = std::ranges::any_of(host.read_only, is_workspace);
  const TreeAccess access = mode == WorkspaceMode::overlay                  ? TreeAccess::overlay
                            : mode == WorkspaceMode::rw && !named_read_only ? TreeAccess::rw
                                                                            : TreeAccess::ro;
  ShownTree tree(host.workspace.path, target, access, policy.filesystem.workspace_exec);
  if (mode == WorkspaceMode::overlay) {
    addOverlay(policy, host, target, hidden, plan);
  } else if (mode != WorkspaceMode::ro || !addMasked(policy, host, target, hidden, plan)) {
    auto added = addDirect(policy, host, target, hidden, tree, plan);
    recordShown(policy, host, plan);
    return added;
  }
  auto added = addRulesOverLayer(policy, host, target, hidden, tree, plan);
  recordShown(policy, host, plan);
  return added;
}

}  // namespace caisson::plan
