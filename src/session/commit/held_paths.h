// Which paths a commit holds back unless they are named: what the host would execute, and for a model everything that
// is not of an ordinary kind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/model.h"
#include "policy/rules/ordinary_files.h"
#include "policy/rules/protected_files.h"
#include "policy/rules/protected_links.h"
#include "session/commit/real_tree.h"
#include "session/commit/resulting_tree.h"

namespace caisson::session {

class HeldPaths {
 public:
  /// `path`: of the real workspace, on the host.
  HeldPaths(RealTree& real, const policy::Workspace& workspace, std::string path);
  // Parts of it refer to each other.
  HeldPaths(const HeldPaths&) = delete;
  HeldPaths& operator=(const HeldPaths&) = delete;

  /// Also holds back what CommitRequest::ordinary_files_only leaves out.
  void holdUnusual() { ordinary_only_ = true; }
  /// Adds a path that exists in the session and not, or not in the same form, in the real workspace. Before why().
  void addPresent(const std::string& path) { shapes_.addPresent(path); }
  /// Finds the links and git configurations of the real workspace, and of the directory around it. `added`: links that
  /// the commit makes.
  void findLinks(const std::vector<policy::WorkspaceLink>& added);

  /// Whether findLinks() could search the whole workspace. If not, more files may be executed than why() knows.
  [[nodiscard]] bool searchedAll() const { return searched_; }

  /// Why the path is held back, judged with all directories above the workspace. Empty: it is not.
  [[nodiscard]] std::string why(const std::string& path, bool directory);
  /// The same for a link, beside why() and ResultingTree::whyHeld(): it would give protected names to other files, or
  /// other names to protected files.
  [[nodiscard]] std::string whyLink(const std::string& path, const std::string& target);
  /// Whether the path is the index of a git directory.
  [[nodiscard]] bool isGitIndex(const std::string& path);

 private:
  RealTree& real_;
  std::string workspace_;
  std::string around_;                 ///< policy::Workspace::around
  std::vector<std::string> patterns_;  ///< policy::Workspace::protected_files
  policy::ProtectedFiles protected_;
  policy::OrdinaryFiles ordinary_;
  std::string in_project_;                           ///< the workspace's path in projectDirectory(), with a `/`; or ""
  std::string in_enclosing_;                         ///< the same for the directory that `links_` are relative to
  std::optional<policy::ProtectedFiles> enclosing_;  ///< for that directory
  std::optional<policy::ProtectedLinks> links_;
  RepositoryShapes shapes_;
  std::optional<std::string> in_git_directory_;  ///< the workspace's path in a git directory around it
  bool ordinary_only_ = false;
  bool searched_ = true;
};

}  // namespace caisson::session
