#include "plan/landlock_tier.h"

#include <algorithm>

#include "plan/filesystem.h"
#include "plan/named_paths.h"
#include "plan/nested_paths.h"
#include "plan/searched_tree.h"
#include "plan/workspace.h"

namespace caisson::plan {
namespace {

using policy::WorkspaceMode;

/// The workspace's mode here. The built-in profiles say `overlay`, which needs a mount namespace: then nothing is
/// written to it. An overlay that the user typed is refused.
Result<WorkspaceMode> workspaceMode(const policy::Policy& policy) {
  const WorkspaceMode mode = policy.filesystem.workspace.mode;
  if (mode != WorkspaceMode::overlay) return mode;
  if (std::ranges::find(policy.typed, "filesystem.workspace.mode") == policy.typed.end()) return WorkspaceMode::ro;
  return fail(plainError(Stage::plan, "plan", "filesystem.workspace.mode",
                         "an overlay needs a mount namespace, which the landlock tier does without",
                         "use --workspace DIR:ro or DIR:rw"));
}

/// After the run, new files that the host would execute are moved away. Existing ones cannot be protected: Landlock
/// cannot except a file from a writable directory.
void guardTree(const policy::Policy& policy, const HostFacts& host, const HostPath& tree, const WorkspaceScan& scan,
               const std::shared_ptr<host::TreeWriter>& writer, Plan& plan) {
  if (policy.filesystem.workspace.allow_exec_config) {
    plan.warnings.push_back("the program may change files in " + tree.path +
                            " that the host would execute (--allow-exec-config)");
    return;
  }
  if (!scan.protected_paths.empty()) {
    plan.warnings.push_back("landlock tier: the program may change files that the host would execute: " +
                            scan.protected_paths.front().path + (scan.protected_paths.size() > 1 ? " and others" : ""));
  }
  if (scan.unscanned_count > 0 || !scan.covered.empty()) {
    // A file that was not seen before the run cannot be told from a new one, and must not be moved.
    plan.notices.push_back("new files that the host would execute stay in " + tree.path + "; not searched: " +
                           (scan.covered.empty() ? scan.unscanned.front() : scan.covered.front().path));
    return;
  }
  plan.guarded.push_back(guardOf(tree, policy, scan, writer, tree.path == host.workspace.path));
}

/// The directories that the policy names besides the workspace.
void addNamedTrees(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  for (const PathRule& rule : pathRules(host)) {
    // The workspace was added before, if it is writable.
    const bool is_workspace = plan.workspace_shown && rule.path->path == host.workspace.path;
    const auto searched = host.named_trees.find(rule.path->path);
    if (!rule.path->directory || is_workspace) continue;
    const WorkspaceScan scan = searched != host.named_trees.end() ? searched->second.scan : WorkspaceScan();
    if (!scan.hidden().empty() || !scan.redacted.empty())
      plan.warnings.push_back("landlock tier: secret files in " + rule.path->path + " are visible");
    if (!rule.writable) continue;
    plan.attribute_trees.push_back(rule.path->path);
    plan.written.push_back({rule.path->path, rule.path->opened});
    if (searched != host.named_trees.end()) guardTree(policy, host, *rule.path, scan, searched->second.writer, plan);
  }
}

/// Whether the current directory, which the policy does not name, is closed to the payload; then adds a notice.
bool declineClosedDirectory(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!policy.filesystem.workspace.path.empty() || host.workspace.payload_may_enter) return false;
  plan.notices.push_back("the program runs as user " + std::to_string(plan.identity.outside_uid) +
                         ", which may not enter the current directory " + host.workspace.path +
                         ", so the sandbox has no workspace; change the directory's mode, or run caisson as the "
                         "ordinary user who owns it");
  return true;
}

Result<void> addTierWorkspace(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const auto mode = workspaceMode(policy);
  if (!mode) return fail(mode.error());
  plan.layers["workspace"] = "none";
  if (*mode == WorkspaceMode::none || declineCurrentDirectory(policy, host, plan)) return {};
  if (auto checked = checkWorkspace(host); !checked) return checked;
  if (declineClosedDirectory(policy, host, plan)) return {};
  if (auto checked = checkHomeSecrets(policy, host, host.workspace, plan); !checked) return checked;
  plan.workspace_shown = true;
  plan.working_directory = plan.workspace_target = host.workspace.path;
  const auto is_workspace = [&](const HostPath& path) { return path.path == host.workspace.path; };
  const bool writable = *mode == WorkspaceMode::rw && std::ranges::none_of(host.read_only, is_workspace);
  if (auto checked = checkNestingForLandlock(host, host.workspace.path, writable); !checked) return checked;
  plan.layers["workspace"] = (writable ? "read-write " : "read-only ") + host.workspace.path;
  if (writable) {
    plan.attribute_trees.push_back(host.workspace.path);
    plan.written.push_back({host.workspace.path, host.workspace.opened});
    guardTree(policy, host, host.workspace, host.scan, host.writer, plan);
    if (policy.filesystem.workspace.allow_exec_config)
      plan.layers["workspace"] += ", with files that the host would execute";
    plan.warnings.emplace_back(kNoRollback);
  } else if (policy.filesystem.workspace.mode == WorkspaceMode::overlay) {
    plan.warnings.push_back(
        "landlock tier: the workspace is read-only, since an overlay needs a mount namespace; let "
        "the program change it with --workspace DIR:rw");
  }
  if (!policy.filesystem.workspace.show_secrets && (!host.scan.hidden().empty() || !host.scan.redacted.empty())) {
    plan.warnings.push_back("landlock tier: secret files in the workspace are visible");
  }
  return {};
}

/// The directory that stands for a size-limited directory of the policy; empty if there is none.
std::string_view privateNameOf(std::string_view path) {
  if (path == kHome) return kPrivateHome;
  if (path == "/tmp") return kPrivateTmp;
  return path == "/cache" ? kPrivateCache : "";
}

/// Gives the payload private directories in the run's store, for those of the policy that programs find by a
/// variable. Others, such as /run, would need a mount.
void addPrivateDirectories(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!host.state_disk.why_not.empty()) {
    plan.warnings.push_back("landlock tier: no private HOME and TMPDIR (" + host.state_disk.why_not + ")");
    return;
  }
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    const std::string_view target = privateNameOf(tmpfs.path);
    // Without a mount, the payload of a root caller has no rights on a cache, which belongs to the caller.
    if (target.empty() || (target == kPrivateCache && plan.identity.change_user)) continue;
    plan.steps.push_back(MountTmpfs{.target = std::string(target),
                                    .bytes = tmpfs.size,
                                    .inodes = tmpfs.inodes,
                                    .mode = 0700,
                                    .executable = tmpfs.exec,
                                    .access = tmpfs.access,
                                    .on_disk = true,
                                    .cache = cacheOf(policy, tmpfs, host, plan)});
    if (tmpfs.access == policy::TmpfsAccess::rw) plan.attribute_trees.emplace_back(target);
    if (target == kPrivateHome && !plan.workspace_shown) plan.working_directory = target;
  }
}

}  // namespace

Result<void> checkHomeSecrets(const policy::Policy& policy, const HostFacts& host, const HostPath& shown, Plan& plan) {
  const std::vector<std::string> secrets = homeSecretsIn(host, shown.path);
  if (!shown.directory || (secrets.empty() && !holdsHome(host, shown.path))) return {};
  const std::string example = secrets.empty() ? ".ssh" : secrets.front();
  if (policy.filesystem.workspace.show_secrets) {
    plan.warnings.push_back("landlock tier: keys and passwords in " + shown.path + " are visible, such as " + example);
    return {};
  }
  return fail(plainError(Stage::host, "plan", shown.path,
                         "it belongs to a home directory, and the landlock tier cannot hide the keys and passwords in "
                         "it, such as " +
                             example,
                         "show a directory below it, or accept that with --show-secrets"));
}

Result<void> planLandlockTier(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!policy.filesystem.denied.empty()) {
    return fail(plainError(Stage::plan, "plan", "filesystem.denied",
                           "Landlock cannot carve a denial out of an allowed tree",
                           "allow less instead: name only the directories that are needed"));
  }
  plan.working_directory = "/";
  if (auto checked = checkNamedPaths(host, plan); !checked) return checked;
  for (const auto* list : {&host.read_only, &host.read_write}) {
    for (const HostPath& path : *list) {
      if (auto checked = checkHomeSecrets(policy, host, path, plan); !checked) return checked;
    }
  }
  if (auto checked = checkNestingForLandlock(host, "", std::nullopt); !checked) return checked;
  if (auto added = addTierWorkspace(policy, host, plan); !added) return added;
  addPrivateDirectories(policy, host, plan);
  addNamedTrees(policy, host, plan);
  plan.layers["namespaces"] = "none (landlock tier)";
  plan.layers["file_attributes"] = "changed by the supervisor, in writable directories only";
  plan.warnings.emplace_back(kLandlockTierLosses);
  return {};
}

}  // namespace caisson::plan
