#include "plan/denied_paths.h"

#include <algorithm>

#include "plan/filesystem.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"
#include "policy/rules/denied_names.h"

namespace caisson::plan {
namespace {

using policy::WorkspaceMode;

struct DeniedPath {
  std::string path;
  bool alias = false;  ///< not the name in the policy
};

/// All paths inside the sandbox that a denied path refers to. `/workspace/...` and the workspace's path on the host
/// both name the workspace, which is shown at `target`: `/workspace` at level full, its host path at level process.
std::vector<DeniedPath> deniedPaths(const std::string& entry, const HostFacts& host, std::string_view target) {
  const std::string path = policy::normalPath(entry);
  std::vector<DeniedPath> paths{{path}};
  const std::string& real = host.workspace.path;
  if (real.empty() || real == "/") return paths;
  for (const std::string_view known : {kWorkspace, std::string_view(real)}) {
    if (!below(path, known)) continue;
    for (const std::string_view shown : {target, std::string_view(real)}) {
      std::string name = std::string(shown) + path.substr(known.size());
      const auto same = [&](const DeniedPath& one) { return one.path == name; };
      if (std::ranges::none_of(paths, same)) paths.push_back({std::move(name), true});
    }
  }
  return paths;
}

MaskPath::Absent whenAbsent(const policy::Policy& policy, const HostFacts& host, const std::string& workspace,
                            const std::string& path) {
  // The host or the payload could create the path in these trees later, and no mask can be mounted over nothing.
  const auto shows = [&](const HostPath& shown) { return below(path, shown.path); };
  const bool direct = policy.filesystem.workspace.mode != WorkspaceMode::none && below(path, workspace);
  if (direct || std::any_of(host.read_write.begin(), host.read_write.end(), shows) ||
      std::any_of(host.read_only.begin(), host.read_only.end(), shows)) {
    return MaskPath::Absent::refuse;
  }
  const bool temporary = std::any_of(policy.filesystem.tmpfs.begin(), policy.filesystem.tmpfs.end(),
                                     [&](const policy::Tmpfs& tmpfs) { return below(path, tmpfs.path); });
  return temporary ? MaskPath::Absent::create : MaskPath::Absent::skip;
}

struct DeniedEntry {
  std::string path;
  bool through_link = false;  ///< on the host; the place that the link leads to is an entry as well
};

/// What the policy denies, under every name on the host: as it is written, where links lead, and the paths that are
/// shown because a name in a denied directory leads to them.
std::vector<DeniedEntry> deniedEntries(const policy::Policy& policy, const HostFacts& host) {
  std::vector<DeniedEntry> entries;
  const auto add = [&](const std::string& path, bool through_link) {
    const auto same = [&](const DeniedEntry& one) { return one.path == path; };
    if (std::ranges::none_of(entries, same)) entries.push_back({path, through_link});
  };
  for (const std::string& entry : policy.filesystem.denied) {
    const std::string path = policy::normalPath(entry);
    const auto real = host.denied_real.find(path);
    add(path, real != host.denied_real.end());
    if (real != host.denied_real.end()) add(real->second, false);
    for (const auto* list : {&host.read_only, &host.read_write}) {
      for (const HostPath& shown : *list) {
        if (!shown.path.empty() && below(policy::normalPath(shown.requested), path)) add(shown.path, false);
      }
    }
  }
  return entries;
}

/// Pins what is above a denied path in the writable trees of the host that show it.
void pinWritable(const policy::Policy& policy, const HostFacts& host, const std::string& workspace,
                 const std::string& path, Plan& plan) {
  const bool direct = plan.workspace_shown && policy.filesystem.workspace.mode == WorkspaceMode::rw;
  if (direct) pinAbove(workspace, path, policy.filesystem.workspace_exec, plan);
  for (const HostPath& shown : host.read_write) pinAbove(shown.path, path, true, plan);
}

}  // namespace

void pinAbove(const std::string& tree, const std::string& path, bool executable, Plan& plan) {
  if (tree.empty() || !below(path, tree)) return;
  for (std::size_t slash = path.find('/', tree.size() + 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    const auto same = [&](const Step& step) {
      const auto* bind = std::get_if<Bind>(&step);
      return bind != nullptr && bind->inside && bind->target == above;
    };
    if (std::ranges::any_of(plan.steps, same)) continue;
    plan.steps.push_back(Bind{.source = above,
                              .target = above,
                              .writable = true,
                              .executable = executable,
                              .optional = true,
                              .inside = true});
  }
}

bool isPattern(std::string_view path) { return path.find_first_of("*?[") != std::string_view::npos; }

std::vector<std::string> deniedPatterns(const policy::Policy& policy) {
  std::vector<std::string> patterns;
  for (const std::string& entry : policy.filesystem.denied) {
    const std::string path = policy::normalPath(entry);
    if (!isPattern(path) || !below(path, kWorkspace) || path.size() <= kWorkspace.size()) continue;
    patterns.push_back(path.substr(kWorkspace.size() + 1));
  }
  return patterns;
}

std::vector<std::string> deniedInWorkspace(const policy::Policy& policy, const HostFacts& host) {
  std::vector<std::string> entries;
  for (const std::string& entry : policy.filesystem.denied) {
    const std::string path = policy::normalPath(entry);
    for (const std::string_view top : {kWorkspace, std::string_view(host.workspace.path)}) {
      if (top.empty() || top == "/" || !below(path, top) || path.size() <= top.size()) continue;
      entries.push_back(path.substr(top.size() + 1));
      break;
    }
  }
  return entries;
}

void noteUnmatched(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  for (const std::string& entry : deniedInWorkspace(policy, host)) {
    const auto matches = [&](const std::string& found) { return policy::deniesPath(entry, found); };
    if (std::ranges::any_of(host.denied_matches, matches)) continue;
    plan.notices.push_back("denied, but not in the workspace now: " + entry);
  }
}

std::vector<std::string> deniedBelow(const policy::Policy& policy, const HostFacts& host, std::string_view directory) {
  std::vector<std::string> result;
  for (const DeniedEntry& entry : deniedEntries(policy, host)) {
    // HostFacts::denied_matches has what a pattern of a directory matches; a whiteout would make a directory of its
    // name.
    if (isPattern(std::string_view(entry.path).substr(0, entry.path.rfind('/')))) continue;
    for (const auto& [path, alias] : deniedPaths(entry.path, host, directory)) {
      if (below(path, directory) && path.size() > directory.size()) result.push_back(path.substr(directory.size() + 1));
    }
  }
  return result;
}

void addDenied(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, Plan& plan) {
  const bool hides_names = plan.workspace_overlay || plan.workspace_masked;
  for (const DeniedEntry& entry : deniedEntries(policy, host)) {
    const auto paths =
        plan.workspace_shown ? deniedPaths(entry.path, host, workspace) : std::vector<DeniedPath>{{entry.path}};
    for (const auto& [path, alias] : paths) {
      if (hides_names && below(path, workspace) && path != workspace) continue;
      // If the workspace is shown at its own path, /workspace is only a link to it, unless its path is below
      // /workspace.
      const bool real_is_there = below(host.workspace.path, kWorkspace);
      if (workspace != kWorkspace && plan.workspace_shown && below(path, kWorkspace) && !real_is_there) continue;
      // With a real directory below /workspace the policy could mean either file: an absent one must not make the run
      // fail.
      const bool ambiguous = real_is_there && host.workspace.path != kWorkspace;
      // A pattern may be meant, which need not match anything.
      const bool sure = !entry.through_link && !isPattern(path) && (!alias || (below(path, workspace) && !ambiguous));
      MaskPath::Absent absent = sure ? whenAbsent(policy, host, workspace, path) : MaskPath::Absent::skip;
      if (plan.root_writable && sure && absent == MaskPath::Absent::skip) absent = MaskPath::Absent::create;
      pinWritable(policy, host, workspace, path, plan);
      plan.steps.push_back(MaskPath{path, absent, !entry.through_link});
    }
  }
}

Result<void> checkDenied(const policy::Policy& policy, const HostFacts& host) {
  const WorkspaceMode mode = policy.filesystem.workspace.mode;
  const bool watched = mode == WorkspaceMode::overlay || mode == WorkspaceMode::ro;
  for (const std::string& entry : policy.filesystem.denied) {
    if (!isPattern(entry)) continue;
    const std::string path = policy::normalPath(entry);
    if (watched && below(path, kWorkspace)) continue;
    return fail(plainError(Stage::policy, "plan", "filesystem.denied: " + entry,
                           "a pattern can be enforced only in an overlay or read-only workspace",
                           "name the paths one by one, or use --workspace DIR:overlay"));
  }
  if (policy.filesystem.workspace.mode != WorkspaceMode::none && !currentDirectoryIsTooBroad(policy, host)) {
    for (const DeniedEntry& entry : deniedEntries(policy, host)) {
      if (entry.path == kWorkspace || host.workspace.path.empty() || !below(host.workspace.path, entry.path)) continue;
      return fail(plainError(Stage::host, "plan", "filesystem.denied: " + entry.path,
                             "the workspace " + host.workspace.path + " lies in it",
                             "use another workspace, or --workspace :none"));
    }
  }
  if (!host.denied_through_links.empty()) {
    return fail(plainError(Stage::host, "plan", "filesystem.denied: " + host.denied_through_links.front(),
                           "a symbolic link is in this path: what it leads to would stay visible under its real name",
                           "deny the real path"));
  }
  return {};
}

}  // namespace caisson::plan
