// The directory to which files that the host would execute are moved after a run: below CAISSON_HOME, or in the
// workspace if that is on another file system or cannot be written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

class FileQuarantine {
 public:
  /// `path` is the workspace's on the host, `id` the sandbox's. `workspace` must outlive this.
  FileQuarantine(const sys::RootDir& workspace, std::string path, std::string id);

  /// Moves a file, a link or a directory, given relative to the workspace. Replaces nothing.
  Result<void> move(const std::string& path);
  /// The directories that files were moved to, absolute.
  [[nodiscard]] const std::vector<std::string>& directories() const { return directories_; }
  /// The directory in the workspace that files are moved to, relative to it; "": none.
  [[nodiscard]] const std::string& inWorkspace() const { return name_in_workspace_; }

 private:
  Result<void> openBelowHome();
  /// A payload can have made anything in the workspace, so the directory is always a new one.
  Result<void> openInWorkspace();
  /// The directory of a moved file, open in both trees.
  struct Parents {
    std::string path;
    sys::RootDir from, to;
  };
  /// Opens the directory `path` in both trees, and creates it in `to`. `made` exists there.
  Result<Parents> openParents(const sys::RootDir& to, const std::string& path, const std::string& made) const;
  Result<void> moveBetween(const Parents& parents, const std::string& path);
  /// The same in `target_`, or in a new directory there if that has a file of this path.
  Result<void> moveHere(const std::string& path);

  const sys::RootDir& workspace_;
  std::string path_, id_;
  std::optional<sys::RootDir> target_;
  std::string target_path_;         ///< absolute
  std::optional<Parents> parents_;  ///< of the last file, in `target_`: files come grouped by directory
  bool in_workspace_ = false;
  std::string name_in_workspace_;
  std::vector<std::string> directories_;
};

}  // namespace caisson::supervise
