#include "plan/denied_paths.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "plan/filesystem.h"
#include "plan/nested_paths.h"
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
  const auto add = [&](std::string name) {
    const auto same = [&](const DeniedPath& one) { return one.path == name; };
    if (std::ranges::none_of(paths, same)) paths.push_back({std::move(name), true});
  };
  // As a part of the root, too, if that is a directory of the host.
  const auto add_in_root = [&](const std::string& on_host) {
    for (std::string& name : namesInRoot(host, on_host)) add(std::move(name));
  };
  add_in_root(path);
  if (real.empty() || real == "/") return paths;
  if (below(path, kWorkspace)) add_in_root(real + path.substr(kWorkspace.size()));
  for (const std::string_view known : {kWorkspace, std::string_view(real)}) {
    if (!below(path, known)) continue;
    for (const std::string_view shown : {target, std::string_view(real)}) {
      add(std::string(shown) + path.substr(known.size()));
    }
  }
  return paths;
}

using Paths = std::set<std::string, std::less<>>;

/// Whether a directory above `path` is one of `directories`.
bool hasAbove(const Paths& directories, std::string_view path) {
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && path != "/"; slash = path.rfind('/')) {
    path = path.substr(0, std::max<std::size_t>(slash, 1));
    if (directories.contains(path)) return true;
  }
  return false;
}

/// Paths of the host that the policy shows.
struct ShownPaths {
  explicit ShownPaths(const HostFacts& host) {
    for (const HostPath& path : host.read_write) writable.insert(path.path);
    for (const HostPath& path : host.read_only) read_only.insert(path.path);
  }
  /// Whether one of them is the path or above it.
  [[nodiscard]] bool hold(const std::string& path) const {
    return std::ranges::any_of(std::array{&writable, &read_only}, [&](const Paths* paths) {
      return paths->contains("") || paths->contains(path) || hasAbove(*paths, path);
    });
  }

  Paths writable, read_only;
};

MaskPath::Absent whenAbsent(const policy::Policy& policy, const ShownPaths& shown, const std::string& workspace,
                            const std::string& path) {
  // The host or the payload could create the path in these trees later, and no mask can be mounted over nothing.
  const bool direct = policy.filesystem.workspace.mode != WorkspaceMode::none && below(path, workspace);
  if (direct || shown.hold(path)) return MaskPath::Absent::refuse;
  const bool temporary = std::any_of(policy.filesystem.tmpfs.begin(), policy.filesystem.tmpfs.end(),
                                     [&](const policy::Tmpfs& tmpfs) { return below(path, tmpfs.path); });
  return temporary ? MaskPath::Absent::create : MaskPath::Absent::skip;
}

struct DeniedEntry {
  std::string path;
  bool through_link = false;  ///< on the host; the place that the link leads to is an entry as well
};

/// Paths that the policy shows, in the order of the names that it has for them. Both lists can have thousands of
/// entries, so they are not compared pair by pair.
class ShownNames {
 public:
  explicit ShownNames(const HostFacts& host) {
    for (const auto* list : {&host.read_only, &host.read_write})
      for (const HostPath& shown : *list)
        if (!shown.path.empty()) names_.emplace_back(policy::normalPath(shown.requested), &shown.path);
    std::ranges::stable_sort(names_, {}, &Name::first);
  }

  /// Calls `visit` with each path whose name is `directory` or lies in it.
  void forEachIn(const std::string& directory, const auto& visit) const {
    const std::string inside = directory == "/" ? directory : directory + "/";
    for (auto at = firstFrom(directory); at != names_.end() && at->first == directory; ++at) visit(*at->second);
    for (auto at = firstFrom(inside); at != names_.end() && at->first.starts_with(inside); ++at)
      if (at->first != directory) visit(*at->second);
  }

 private:
  using Name = std::pair<std::string, const std::string*>;
  [[nodiscard]] std::vector<Name>::const_iterator firstFrom(const std::string& name) const {
    return std::ranges::lower_bound(names_, name, {}, &Name::first);
  }
  std::vector<Name> names_;
};

/// What the policy denies, under every name on the host: as it is written, where links lead, and the paths that are
/// shown because a name in a denied directory leads to them.
std::vector<DeniedEntry> deniedEntries(const policy::Policy& policy, const HostFacts& host) {
  std::vector<DeniedEntry> entries;
  std::set<std::string> known;
  const auto add = [&](const std::string& path, bool through_link) {
    if (known.insert(path).second) entries.push_back({path, through_link});
  };
  const ShownNames shown(host);
  for (const std::string& entry : policy.filesystem.denied) {
    const std::string path = policy::normalPath(entry);
    const auto real = host.denied_real.find(path);
    add(path, real != host.denied_real.end());
    if (real != host.denied_real.end()) add(real->second, false);
    shown.forEachIn(path, [&](const std::string& place) { add(place, false); });
  }
  return entries;
}

/// Pins what is above a denied path in the writable trees of the host that show it.
void pinWritable(const policy::Policy& policy, const ShownPaths& shown, const std::string& workspace,
                 const std::string& path, Plan& plan) {
  const bool direct = plan.workspace_shown && policy.filesystem.workspace.mode == WorkspaceMode::rw;
  if (direct) pinAbove(workspace, path, policy.filesystem.workspace_exec, plan);
  if (!hasAbove(shown.writable, path)) return;
  for (const std::string& tree : shown.writable) pinAbove(tree, path, true, plan);
}

}  // namespace

std::vector<std::string> namesInRoot(const HostFacts& host, const std::string& path) {
  std::vector<std::string> names;
  if (!host.root.digest.empty()) return names;
  for (const std::string& layer : host.root.layers) {
    if (path.size() <= layer.size() || !below(path, layer)) continue;
    std::string name = path.substr(layer == "/" ? 0 : layer.size());
    if (!below(name, kWorkspace)) names.push_back(std::move(name));  // the workspace covers it there
  }
  return names;
}

namespace {

/// Whether a directory of the host can be renamed by what the plan mounts so far: its parent is shown writable, and
/// nothing is mounted on it.
bool canRename(const Plan& plan, const std::string& directory) {
  const std::string parent = directory.substr(0, directory.rfind('/'));
  bool writable = false;
  for (const Step& step : plan.steps) {
    if (const auto* bind = std::get_if<Bind>(&step)) {
      if (bind->target == directory) return false;
      if (below(parent, bind->target)) writable = bind->writable;
    } else if (const auto* overlay = std::get_if<MountOverlay>(&step)) {
      if (below(parent, overlay->target)) writable = false;
    }
  }
  return writable;
}

}  // namespace

void pinAbove(const std::string& tree, const std::string& path, bool executable, Plan& plan) {
  if (tree.empty() || !below(path, tree)) return;
  for (std::size_t slash = path.find('/', tree.size() + 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    if (!canRename(plan, above)) continue;
    plan.steps.push_back(Bind{.source = above,
                              .target = above,
                              .writable = true,
                              .executable = executable,
                              .optional = true,
                              .inside = true,
                              .canonical = true});
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
  return deniedInWorkspace(policy, host.workspace.path);
}

std::vector<std::string> deniedInWorkspace(const policy::Policy& policy, std::string_view workspace) {
  std::vector<std::string> entries;
  for (const std::string& entry : policy.filesystem.denied) {
    const std::string path = policy::normalPath(entry);
    for (const std::string_view top : {kWorkspace, workspace}) {
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

namespace {

/// Whether a separate mount shows the host's object at this path of the workspace, and not a layer that hides names.
bool isShownDirectly(const Plan& plan, const std::string& workspace, const std::string& path) {
  return std::ranges::any_of(plan.steps, [&](const Step& step) {
    const auto* bind = std::get_if<Bind>(&step);
    return bind != nullptr && bind->canonical && !bind->inside && below(bind->target, workspace) &&
           below(path, bind->target);
  });
}

/// Whether a path of the workspace shows nothing at its own name, or what the workspace shows: then it is masked
/// already, if it exists. Named paths that the workspace hides are mounted after the copies.
bool isCopied(const Plan& plan, const std::string& path) {
  bool copied = true;
  for (const Step& step : plan.steps) {
    const auto* bind = std::get_if<Bind>(&step);
    if (bind != nullptr && below(path, bind->target) && (isCopy(*bind) || !bind->inside)) copied = isCopy(*bind);
  }
  return copied;
}

/// The mask that hides what is above `path`, if nothing is mounted there afterwards.
MaskPath* maskAbove(Plan& plan, const std::string& path) {
  MaskPath* mask = nullptr;
  for (Step& step : plan.steps) {
    if (auto* masked = std::get_if<MaskPath>(&step)) {
      if (path != masked->target && below(path, masked->target)) mask = masked;
    } else {
      const auto shows = [&](const auto& mount) {
        if constexpr (requires { mount.target; }) return below(path, mount.target);
        return false;
      };
      if (std::visit(shows, step)) mask = nullptr;
    }
  }
  return mask;
}

/// Those above others first, by their names in the workspace.
void sortByDepth(const HostFacts& host, std::vector<DeniedEntry>& entries) {
  const auto depth = [&](const DeniedEntry& entry) {
    const std::string& real = host.workspace.path;
    const bool own = !real.empty() && real != "/" && below(entry.path, real);
    const std::string name = own ? std::string(kWorkspace) + entry.path.substr(real.size()) : entry.path;
    return std::ranges::count(name, '/');
  };
  std::ranges::stable_sort(entries, {}, depth);
}

enum class DeniedPart : std::uint8_t { workspace, rest };

void addMasks(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, DeniedPart part,
              Plan& plan) {
  const bool hides_names = plan.workspace_overlay || plan.workspace_masked;
  const std::string& real = host.workspace.path;
  std::vector<DeniedEntry> entries = deniedEntries(policy, host);
  sortByDepth(host, entries);
  const ShownPaths shown(host);
  Paths masked;
  for (const DeniedEntry& entry : entries)
    if (!entry.through_link) masked.insert(entry.path);
  for (const DeniedEntry& entry : entries) {
    // A mask hides everything below it, where no other mask can be mounted then.
    if (hasAbove(masked, entry.path)) continue;
    const auto paths =
        plan.workspace_shown ? deniedPaths(entry.path, host, workspace) : std::vector<DeniedPath>{{entry.path}};
    for (const auto& [path, alias] : paths) {
      const bool in_workspace = plan.workspace_shown && below(path, workspace);
      if (in_workspace != (part == DeniedPart::workspace)) continue;
      if (hides_names && in_workspace && path != workspace && !isShownDirectly(plan, workspace, path)) continue;
      // If the workspace is shown at its own path, /workspace is only a link to it, unless its path is below
      // /workspace.
      const bool real_is_there = below(host.workspace.path, kWorkspace);
      if (workspace != kWorkspace && plan.workspace_shown && below(path, kWorkspace) && !real_is_there) continue;
      // With a real directory below /workspace the policy could mean either file: an absent one must not make the run
      // fail.
      const bool ambiguous = real_is_there && host.workspace.path != kWorkspace;
      // A pattern may be meant, which need not match anything.
      const bool sure = !entry.through_link && !isPattern(path) && (!alias || (below(path, workspace) && !ambiguous));
      MaskPath::Absent absent = sure ? whenAbsent(policy, shown, workspace, path) : MaskPath::Absent::skip;
      if (plan.root_writable && sure && absent == MaskPath::Absent::skip) absent = MaskPath::Absent::create;
      if (MaskPath* above = absent == MaskPath::Absent::refuse ? maskAbove(plan, path) : nullptr; above != nullptr) {
        above->absent = MaskPath::Absent::refuse;  // the path is denied only as long as that is hidden
        continue;
      }
      pinWritable(policy, shown, workspace, path, plan);
      const bool own_path = plan.workspace_shown && !in_workspace && below(path, real);
      if (own_path && isCopied(plan, path)) absent = MaskPath::Absent::skip;
      plan.steps.push_back(MaskPath{path, absent, !entry.through_link});
    }
  }
}

}  // namespace

void addDeniedInWorkspace(const policy::Policy& policy, const HostFacts& host, const std::string& workspace,
                          Plan& plan) {
  addMasks(policy, host, workspace, DeniedPart::workspace, plan);
}

void addDenied(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, Plan& plan) {
  addMasks(policy, host, workspace, DeniedPart::rest, plan);
}

namespace {

/// Why a pattern cannot be enforced, and what to do instead.
Error patternError(const std::string& entry, bool watched, const std::string& path, const HostFacts& host) {
  const std::string object = "filesystem.denied: " + entry;
  if (!watched) {
    return plainError(Stage::policy, "plan", object,
                      "a pattern can be enforced only in an overlay or read-only workspace",
                      "name the paths one by one, or use --workspace DIR:overlay");
  }
  const std::string& real = host.workspace.path;
  if (below(path, kWorkspace)) {
    return plainError(Stage::policy, "plan", object,
                      "a pattern cannot be enforced in directories that --rw shows directly",
                      "name the paths one by one, or leave out --rw");
  }
  if (!real.empty() && path.size() > real.size() && below(path, real)) {
    return plainError(Stage::policy, "plan", object, "a pattern must be relative to the workspace",
                      "write it as '" + path.substr(real.size() + (real == "/" ? 0 : 1)) + "'");
  }
  return plainError(Stage::policy, "plan", object, "a pattern can be enforced only in the workspace",
                    "name the paths one by one");
}

}  // namespace

Result<void> checkDenied(const policy::Policy& policy, const HostFacts& host) {
  const WorkspaceMode mode = policy.filesystem.workspace.mode;
  const bool watched = mode == WorkspaceMode::overlay || mode == WorkspaceMode::ro;
  for (const std::string& entry : policy.filesystem.denied) {
    if (!isPattern(entry)) continue;
    const std::string path = policy::normalPath(entry);
    // Where the host's files are shown directly, a mask covers what is there now, and not what a pattern matches later.
    const std::size_t wildcard = path.find_first_of("*?[");
    const bool last_only = path.find('/', wildcard) == std::string::npos;
    const auto holds = [&](const HostPath& shown) {
      if (!below(path, kWorkspace) || !below(shown.path, host.workspace.path)) return false;
      const std::string fixed = path.substr(kWorkspace.size(), path.rfind('/', wildcard) - kWorkspace.size());
      const std::string directory = host.workspace.path + fixed;
      return below(directory, shown.path) || (!last_only && below(shown.path, directory));
    };
    if (watched && below(path, kWorkspace) && std::ranges::none_of(host.read_write, holds)) continue;
    return fail(patternError(entry, watched, path, host));
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
