// Files of a workspace that git's configurations make git execute: core.hooksPath, included configurations, scripts of
// filters and aliases.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/followed_path.h"
#include "policy/rules/git_config.h"
#include "policy/rules/protected_links.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Configurations of one git directory that are read, with what they include.
inline constexpr std::size_t kMaxGitConfigs = 32;

/// A path that a configuration names, as absolute path; links and `..` stay. A relative one begins in `base`, which is
/// absolute; `~/` is the user's home. nullopt: it depends on more than that.
std::optional<std::string> absolutePath(const std::string& base, std::string_view value);

/// The path of `workspace` relative to the nearest directory above it that has the shape of a git directory of any
/// name; nullopt: there is none. A bare repository's `hooks` may be a workspace.
std::optional<std::string> pathInGitDirectory(const std::string& workspace);

/// Whether the file `.git` at this absolute path makes its directory a linked work tree (git worktree add).
bool isLinkedWorkTree(const std::string& git_file);

/// Collects what configurations name inside the workspace, or around it: then the path is "", the whole workspace.
/// Reads configurations outside as well: the user's, those of all repositories around the workspace, or of which it is
/// a worktree. Git directories and `.git` files may come from a payload, so all reads are bounded.
class GitPrograms {
 public:
  /// `workspace` is the canonical path of `root`. Both must outlive this.
  GitPrograms(const sys::RootDir& root, const std::string& workspace, policy::OutsideLinks outside);

  // False: a configuration is too large, or there are too many, so something may be missing. Paths are relative to the
  // workspace.

  /// The git directory at `path`.
  bool addDirectory(const std::string& path);
  /// The file `.git` in the directory at `path`: a worktree, a submodule, or a git directory kept elsewhere.
  bool addFile(const std::string& path);
  /// The user's configurations, and the repositories of the user that hold the workspace. Not the nearest alone: one
  /// around it (of which this may be a submodule) can name files in the workspace, too.
  bool addAbove();

  [[nodiscard]] const std::vector<policy::NamedProgram>& found() const { return found_; }

 private:
  /// What a configuration says.
  struct Configuration {
    policy::GitConfigPaths paths;
    bool complete = true;  ///< false: it is too large
  };
  struct Repository {
    std::string directory;  ///< the git directory; canonical, as all; empty: of none in particular
    std::string work_tree;
  };
  bool add(Repository repository);
  /// The configurations and what they include.
  bool addConfigs(Repository repository, std::vector<std::string> configs);
  [[nodiscard]] std::optional<Repository> repositoryOf(const std::string& git_file) const;
  /// The text of a file, or nothing. Sets `too_large`.
  std::optional<std::string> read(const std::string& path, bool& too_large) const;
  /// Whether a path in the workspace is a link, or leads through one; or nothing is there.
  bool passesLink(const std::string& path, bool& missing) const;
  /// The git directory that several work trees share.
  [[nodiscard]] std::string sharedDirectory(const Repository& repository) const;
  /// The first line of a small file.
  [[nodiscard]] std::string line(const std::string& path) const;
  /// Where the host finds an absolute path.
  [[nodiscard]] std::optional<FollowedPath> follow(const std::string& path) const;
  /// absolutePath(), followed.
  [[nodiscard]] std::optional<std::string> canonical(const std::string& base, std::string_view value) const;
  /// A program, script or configuration; `file`: NamedProgram::file.
  void name(const Repository& repository, const std::string& path, const std::string& configuration, bool file = false);
  /// A directory of hooks. If it holds the work tree, only the names of hooks in it.
  void nameHooks(const Repository& repository, const std::string& path, const std::string& configuration);
  /// Whether a path outside of the workspace leads into it.
  [[nodiscard]] bool leadsIn(const std::string& path) const;
  /// The user's configurations that are links into the workspace.
  void nameUserFiles();
  /// The configurations and hooks of a git directory outside of the workspace that are links into it. `shared`:
  /// sharedDirectory().
  void nameOwnFiles(const Repository& repository, const std::string& shared);
  void addFound(std::string path, const std::string& configuration, bool file = false);

  const sys::RootDir& root_;
  const std::string& workspace_;
  const policy::OutsideLinks outside_;
  std::vector<std::string> user_configs_;  ///< read for every repository: relative paths mean its work tree
  /// Valid until the next call.
  const Configuration& configuration(const std::string& path);

  std::map<std::string, Configuration> known_;  ///< some that were read, by path
  std::set<std::pair<std::string, bool>> named_;
  std::vector<policy::NamedProgram> found_;
};

}  // namespace caisson::host
