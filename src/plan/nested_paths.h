// Rules for paths that lie in other shown trees: `--ro lib` below a writable workspace, `--rw out` below a read-only
// one.
//
// A rule belongs to the host object, at every path that shows it. Denied paths win (denied_paths.h); of the others the
// deepest one that contains the object decides, and of two equal ones `ro`.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace caisson::plan {

/// Whether the sandbox has a workspace: the policy wants one, and the directory can be shown.
bool showsWorkspace(const policy::Policy& policy, const HostFacts& host);

/// What the workspace hides, completely or in part, except what is denied; relative to it.
std::vector<std::string> hiddenInWorkspace(const policy::Policy& policy, const HostFacts& host);

/// Whether the workspace, shown at `target`, hides the host path: as a secret, or since it is denied. Such a path that
/// the policy names nevertheless is shown at its own path only.
bool workspaceHides(const policy::Policy& policy, const HostFacts& host, const std::string& target,
                    const std::string& path);

/// Whether a bind is a second view of a path of the new root.
inline bool isCopy(const Bind& bind) { return bind.inside && bind.canonical && bind.source != bind.target; }

/// A path that the policy names, with the access that it gives.
struct PathRule {
  const HostPath* path = nullptr;
  bool writable = false;
};

/// The named paths that exist, those above first. One that is named twice is read-only.
std::vector<PathRule> pathRules(const HostFacts& host);

/// The rule for the deepest path that contains `path`, or nullptr.
const PathRule* deepestRule(const std::vector<PathRule>& rules, std::string_view path);

/// What a write in a tree does: it fails, is kept apart, or changes the host's file.
enum class TreeAccess : std::uint8_t { ro, overlay, rw };

/// A host directory that the sandbox shows at `target`, and the mounts in it.
class ShownTree {
 public:
  ShownTree(std::string source, std::string target, TreeAccess access, bool executable)
      : source_(std::move(source)), target_(std::move(target)), access_(access), executable_(executable) {}

  /// Of the object at this path relative to the tree, by the rules added so far.
  [[nodiscard]] TreeAccess accessAt(std::string_view relative) const;

  /// Whether the host's object at this path is shown by a separate mount, and not through the tree.
  [[nodiscard]] bool isDirect(std::string_view relative) const;

  /// Gives a path of the tree, or the tree itself, the access of a rule. Add rules for directories above first.
  void add(const PathRule& rule, Plan& plan);

  /// Makes mount points of the directories above `relative` that could be renamed: else `mv` of one makes room for
  /// another directory with other content, also for later runs.
  void pinAbove(std::string_view relative, Plan& plan);

  /// Makes a path read-only with everything in it, also if it was pinned before. Deeper rules that give access keep it,
  /// and so does a path that is itself named.
  void protect(const std::string& relative, Plan& plan);

 private:
  struct NestedRule {
    std::string relative;
    TreeAccess access;
    Bind bind;
    bool direct;  ///< bound from the host
  };

  /// Whether a protected directory above makes this read-only.
  [[nodiscard]] bool isInProtected(std::string_view relative) const;

  [[nodiscard]] std::string inside(std::string_view relative) const;
  [[nodiscard]] Bind itself(const std::string& relative, bool writable) const;
  void mount(const std::string& relative, const Bind& bind, Plan& plan);

  std::string source_, target_;
  TreeAccess access_;
  bool executable_;
  std::vector<NestedRule> rules_;
  std::set<std::string, std::less<>> mounted_;    ///< mount points in the tree: they cannot be renamed
  std::set<std::string, std::less<>> protected_;  ///< read-only mount points
};

/// Landlock rights cover everything below a path, so the landlock tier cannot make a part of a writable tree read-only:
/// an error if a rule would need that. `workspace_writable` is unset if the workspace, at `workspace`, is not shown.
Result<void> checkNestingForLandlock(const HostFacts& host, const std::string& workspace,
                                     std::optional<bool> workspace_writable);

}  // namespace caisson::plan
