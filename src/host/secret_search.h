// Judges single files of a workspace: whether one holds a secret, and git configurations that are shown in part.
// workspace_scan.h walks the directories.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::host {

class SecretSearch {
 public:
  /// `workspace` is the absolute path of `root`. All must outlive this; results are added to `found`.
  SecretSearch(const sys::RootDir& root, const std::string& workspace, plan::WorkspaceScan& found)
      : root_(root), workspace_(workspace), found_(found) {}

  /// Whether a file or link of this name has to be judged.
  static bool matters(std::string_view name);

  /// Adds a file that holds a secret. `path` ends with `name`.
  void hideFile(std::string path, const std::string& name);
  /// Adds a link with a secret name, and the file that has this name through it. `hold_links`: also the links on the
  /// way.
  void hideLink(std::string path, const std::string& name, bool hold_links);
  /// Adds the git configurations among `names` of a directory, and what they include, without their credentials.
  /// `git`: the directory is a git directory. Those beyond a limit are hidden.
  void redactConfigs(const std::string& directory, const std::vector<std::string>& names, bool git);

  /// Whether a payload, which is the same user, may give itself access to what is closed to us. True if that is
  /// unknown.
  [[nodiscard]] bool mayOpen(const std::string& path) const;
  /// How many files were read.
  [[nodiscard]] std::size_t reads() const { return reads_; }

 private:
  [[nodiscard]] bool isRegular(const std::string& path) const;
  /// Whether a file is secret if it is called `name`.
  bool isSecret(const std::string& path, const std::string& name);
  /// The first bytes of a regular file; nothing of anything else. nullopt: it is closed to us, but not to a payload
  /// that changes its mode.
  std::optional<std::string> beginning(const std::string& path, std::size_t bytes);

  const sys::RootDir& root_;
  const std::string& workspace_;
  plan::WorkspaceScan& found_;
  std::size_t reads_ = 0;
  std::set<std::string> configs_;  ///< of git, which redactConfigs() has read
};

}  // namespace caisson::host
