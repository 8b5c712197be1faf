// The tree that a commit would leave: the real workspace with the changes that are committed.
//
// Links and git directories are judged by it, not by the session's own tree: what is held back or not chosen is not
// part of the result.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "session/commit/real_tree.h"

namespace caisson::session {

class ResultingTree {
 public:
  explicit ResultingTree(RealTree& real) : real_(real) {}

  void putDeleted(const std::string& path) { changes_[path] = {}; }
  void put(const std::string& path, sys::FileType type, std::string target = {}) {
    changes_[path] = {type, std::move(target)};
  }
  /// Removes the change at `path`: the real file stays as it is.
  void leaveOut(const std::string& path) { changes_.erase(path); }

  /// Why a link at `path` is held back, or empty: it leads outside, a part of its way is missing, or its target has
  /// `..` after a name.
  [[nodiscard]] std::string whyHeld(const std::string& path, std::string_view target);

 private:
  struct Node {
    sys::FileType type = sys::FileType::unknown;  ///< unknown: nothing is there
    std::string target;
  };
  /// What the commit leaves at exactly this path: the change, else the real file. Does not check parents and does not
  /// follow links. `unknown` also on a read error.
  Node lookUp(const std::string& path);

  RealTree& real_;
  std::unordered_map<std::string, Node> changes_;
};

/// Recognises git directories by their shape, over everything that changed in a session.
class RepositoryShapes {
 public:
  explicit RepositoryShapes(RealTree& real) : real_(real) {}

  /// Adds a path that exists in the session and not, or not in the same form, in the real workspace.
  void addPresent(const std::string& path);
  /// Whether `path` belongs to a git directory of any name, existing or made by the commit, and could make git run
  /// programs: see protected_files.h. Paths in `.git` are not checked here.
  [[nodiscard]] bool isHeld(const std::string& path);
  /// Whether `path` is below a git directory of any name, existing or made by the commit.
  [[nodiscard]] bool isInside(const std::string& path);

 private:
  struct Shape {
    bool now = false;    ///< the real directory has the shape of a git directory
    bool after = false;  ///< it would have that shape with the session's files
  };
  /// Computed once for each directory: paths added by addPresent() later do not count.
  const Shape& shapeOf(const std::string& directory);
  /// Whether the real directory has the configuration of a git directory, which may lack its `HEAD` for now.
  bool hasRepositoryConfig(const std::string& directory);

  RealTree& real_;
  std::unordered_map<std::string, std::unordered_set<std::string>> present_;  ///< folded names, by directory
  std::unordered_map<std::string, Shape> shapes_;
};

}  // namespace caisson::session
