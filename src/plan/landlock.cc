#include "plan/landlock.h"

#include <algorithm>
#include <set>

#include "plan/executables.h"
#include "plan/nested_paths.h"
#include "plan/system_paths.h"
#include "plan/workspace.h"
#include "sys/kernel_abi.h"

namespace caisson::plan {

using namespace caisson::sys;  // NOLINT: the kernel's constants

std::uint64_t filesystemRights(int abi) {
  if (abi < 1) return 0;
  std::uint64_t rights = (1ULL << 13) - 1;  // the thirteen of ABI 1
  if (abi >= 2) rights |= kFsRefer;
  if (abi >= 3) rights |= kFsTruncate;
  if (abi >= 5) rights |= kFsIoctlDev;
  return rights;
}

std::uint64_t readRights() { return kFsReadFile | kFsReadDir; }
std::uint64_t executeRights() { return readRights() | kFsExecute; }
std::uint64_t writeRights(int abi) { return filesystemRights(abi) & ~(kFsExecute | kFsMakeChar | kFsMakeBlock); }

namespace {

Landlock base(int abi) {
  Landlock landlock;
  landlock.abi = abi;
  landlock.handled_fs = filesystemRights(abi);
  if (abi >= 6) landlock.scoped = kScopeAbstractUnix | kScopeSignal;
  return landlock;
}

std::uint64_t writable(int abi, bool executable) { return writeRights(abi) | (executable ? kFsExecute : 0); }

/// The rights in a size-limited directory. In a write-only one files can be created and written. Without kFsRefer none
/// can be linked or moved to a readable place; without kFsTruncate and the remove rights none can be truncated or
/// replaced.
std::uint64_t tmpfsRights(const MountTmpfs& mount, int abi) {
  switch (mount.access) {
    case policy::TmpfsAccess::rw: return writable(abi, mount.executable);
    case policy::TmpfsAccess::wo: return kFsWriteFile | kFsMakeReg | kFsMakeDir;
    case policy::TmpfsAccess::ro: return readRights();
  }
  return 0;
}

std::string topOf(const std::string& target) { return target.substr(0, target.find('/', 1)); }

/// Adds the rules for reading. A right for "/" covers everything below it. If a directory must not be readable, all
/// other top-level entries get the right instead; names can still be listed.
void addReading(const Plan& plan, Landlock& landlock) {
  std::set<std::string> hidden, tops;
  for (const Step& step : plan.steps) {
    const auto* tmpfs = std::get_if<MountTmpfs>(&step);
    if (tmpfs != nullptr && tmpfs->access == policy::TmpfsAccess::wo) hidden.insert(tmpfs->target);
    std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.target; }) tops.insert(topOf(one.target));
          if constexpr (requires { one.path; }) tops.insert(topOf(one.path));
          if constexpr (requires { one.names; }) tops.insert(one.names.begin(), one.names.end());
        },
        step);
  }
  landlock.rules.push_back(
      {"/", (hidden.empty() ? readRights() : std::uint64_t{kFsReadDir}) & landlock.handled_fs, false});
  if (hidden.empty()) return;
  for (const std::string& top : tops) {
    const bool holds_hidden =
        std::any_of(hidden.begin(), hidden.end(), [&](const std::string& target) { return topOf(target) == top; });
    if (top.size() > 1 && !holds_hidden) landlock.rules.push_back({top, readRights() & landlock.handled_fs, true});
  }
}

/// Whether a mask hides the target of a mount.
bool isMasked(const Plan& plan, const std::string& target) {
  return std::ranges::any_of(plan.steps, [&](const Step& step) {
    const auto* mask = std::get_if<MaskPath>(&step);
    return mask != nullptr && below(target, mask->target);
  });
}

std::uint64_t deviceRights(int abi) { return filesystemRights(abi) & (kFsReadFile | kFsWriteFile | kFsIoctlDev); }

}  // namespace

Landlock landlockForOwnRoot(const Plan& plan, int abi) {
  Landlock landlock = base(abi);
  if (abi < 1) return landlock;
  const auto add = [&](std::string path, std::uint64_t access, bool optional = false) {
    landlock.rules.push_back({std::move(path), access & landlock.handled_fs, optional});
  };
  addReading(plan, landlock);
  add("/dev", deviceRights(abi));  // holds only the few devices of the plan
  for (const Step& step : plan.steps) {
    if (const auto* bind = std::get_if<Bind>(&step)) {
      if (bind->devices) continue;
      const bool absent = bind->optional || (bind->canonical && isMasked(plan, bind->target));
      if (bind->writable) {
        add(bind->target, writable(abi, bind->executable), absent);
      } else if (bind->executable && (!bind->inside || isCopy(*bind) || plan.layered_root)) {
        add(bind->target, executeRights(), absent);
      }
    } else if (const auto* tmpfs = std::get_if<MountTmpfs>(&step)) {
      if (tmpfs->target != "/" && tmpfs->target != kRootChanges) add(tmpfs->target, tmpfsRights(*tmpfs, abi));
    } else if (const auto* overlay = std::get_if<MountOverlay>(&step)) {
      if (!overlay->read_only) add(overlay->target, writable(abi, overlay->executable));
      if (overlay->read_only && overlay->executable) add(overlay->target, executeRights());
    } else if (const auto* proc = std::get_if<MountProc>(&step)) {
      add(proc->target, readRights() | kFsWriteFile);  // a thread's own comm; the kernel guards the rest
    } else if (const auto* root = std::get_if<MountRoot>(&step)) {
      // Covers all mounts of the tree. Those that must be read-only or noexec are so by their own attributes.
      if (root->writable || root->executable)
        add("/", root->writable ? writable(abi, root->executable) : std::uint64_t{kFsExecute});
    }
  }
  return landlock;
}

namespace {

/// The workspace and the paths that the policy names. Rights add up, so a path that is named twice gets those of `ro`.
void addNamedRules(const policy::Policy& policy, const HostFacts& host, const Plan& plan, Landlock& landlock) {
  const int abi = landlock.abi;
  const bool lists = hasExecutableRules(policy);
  const auto add = [&](const HostPath& path, std::uint64_t access) {
    landlock.rules.push_back({path.path, access & landlock.handled_fs, true});
    // In a mount namespace there is an overlay, or another view of the directory, at that path.
    if (plan.tier == policy::Tier::landlock) landlock.rules.back().opened = path.opened;
  };
  const std::vector<PathRule> rules = pathRules(host);
  const auto is_workspace = [&](const PathRule& rule) {
    return plan.workspace_shown && rule.path->path == host.workspace.path;
  };
  bool may_write_workspace = false;
  if (plan.workspace_shown) {
    const policy::Workspace& workspace = policy.filesystem.workspace;
    const bool exec = policy.filesystem.workspace_exec && !lists;
    const bool overlay = workspace.mode == policy::WorkspaceMode::overlay && plan.namespaces.mount;
    const bool named_read_only =
        std::ranges::any_of(rules, [&](const PathRule& rule) { return is_workspace(rule) && !rule.writable; });
    may_write_workspace = (overlay || workspace.mode == policy::WorkspaceMode::rw) && !named_read_only;
    add(host.workspace, may_write_workspace ? writable(abi, exec) : (exec ? executeRights() : readRights()));
  }
  for (const PathRule& rule : rules) {
    const HostPath& path = *rule.path;
    if (rule.writable && (!is_workspace(rule) || may_write_workspace)) {
      add(path, path.directory ? writable(abi, !lists) : (kFsReadFile | kFsWriteFile | kFsTruncate));
    } else {
      add(path, lists ? readRights() : path.directory ? executeRights() : (kFsReadFile | kFsExecute));
    }
  }
}

}  // namespace

Landlock landlockForHostRoot(const policy::Policy& policy, const HostFacts& host, const Plan& plan, int abi) {
  Landlock landlock = base(abi);
  if (abi < 1) return landlock;
  const auto add = [&](std::string path, std::uint64_t access) {
    landlock.rules.push_back({std::move(path), access & landlock.handled_fs, true});
  };
  // The filter leaves connect() to the supervisor; this denies what would get past the filter.
  if (plan.tier == policy::Tier::landlock && abi >= 4) landlock.handled_net = kNetBindTcp | kNetConnectTcp;
  const bool listed = policy.process.allowed_executables.has_value();
  for (const auto& [path, link] : host.system_directories) {
    if (link.empty()) add(path, listed ? readRights() : executeRights());
  }
  for (const SystemPath& path : etcPaths()) add(std::string(path.path), readRights());
  if (plan.own_root) {  // the sandbox's own are mounted over the host's
    for (const std::string_view path : kGeneratedEtc) add(std::string(path), readRights());
  }
  for (const std::string_view device : kDevices) add(std::string(device), deviceRights(abi));
  if (plan.own_root)
    add("/dev/pts", deviceRights(abi) | kFsReadDir);  // a private instance; without one it is the host's
  // Without a pid namespace /proc is the host's: reading shows names and command lines of all processes. Memory,
  // environment and descriptors of processes outside the domain stay closed, since Landlock denies tracing them. No
  // writing: another process's oom_score_adj needs no tracing.
  if (plan.tier == policy::Tier::landlock) {
    add("/proc", readRights());
    for (const std::string_view path : hostEtcPaths()) add(std::string(path), readRights());
  }
  for (const Toolchain& toolchain : host.toolchains) {
    for (const std::string& path : toolchain.shown) {
      // Without mounts nothing in it can be hidden.
      const bool whole = std::ranges::none_of(
          toolchain.hidden, [&](const std::string& hidden) { return hidden.starts_with(path + "/"); });
      if (whole || plan.tier != policy::Tier::landlock) add(path, executeRights());
    }
  }
  // Only private directories: without a mount namespace, or where the workspace is below it, /tmp is the host's.
  for (const Step& step : plan.steps) {
    if (const auto* tmpfs = std::get_if<MountTmpfs>(&step); tmpfs != nullptr && !tmpfs->optional) {
      add(tmpfs->target, tmpfsRights(*tmpfs, abi));
      landlock.rules.back().optional = plan.own_root;  // a private directory of the landlock tier must be there
    }
    if (const auto* bind = std::get_if<Bind>(&step); listed && bind != nullptr && bind->executable && !bind->writable) {
      add(bind->target, executeRights());
    }
    if (const auto* proc = std::get_if<MountProc>(&step)) add(proc->target, readRights() | kFsWriteFile);
  }
  addNamedRules(policy, host, plan, landlock);
  return landlock;
}

}  // namespace caisson::plan
