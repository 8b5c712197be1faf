// Judges single files of a workspace: whether one holds a secret, and git configurations that are shown in part.
// workspace_scan.h walks the directories.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/followed_path.h"
#include "plan/plan.h"
#include "policy/rules/protected_links.h"
#include "policy/rules/secret_files.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Whether the name or the place of an entry of `workspace` alone says that it is secret; directories above it are not
/// looked at. `shown`: as for SecretSearch; a directory above one of them counts as shown.
bool isNamedSecret(const std::string& workspace, const std::string& path, bool directory,
                   const std::vector<std::string>& shown);
/// Whether a regular file of `size` bytes at `path` that begins with `text` is secret, or is a git configuration with
/// credentials. For content that was read elsewhere; a search also knows what links and configurations lead to.
bool isSecretContent(const std::string& workspace, const std::string& path, std::string_view text, std::uint64_t size,
                     const std::vector<std::string>& shown);

class SecretSearch {
 public:
  /// `workspace` is the canonical path of `root`. All must outlive this; results are added to `found`.
  /// `shown`: files that the user wants to be shown, relative to the workspace.
  /// `outside`: linksOutside(workspace), if there is one already.
  SecretSearch(const sys::RootDir& root, const std::string& workspace, const std::vector<std::string>& shown,
               plan::WorkspaceScan& found, policy::OutsideLinks outside = {})
      : root_(root),
        workspace_(workspace),
        outside_(outside ? std::move(outside) : linksOutside(workspace)),
        shown_(shown),
        found_(found) {}

  /// Whether a file or link of this name has to be judged.
  static bool matters(std::string_view name);

  /// Whether a directory of this name and place is secret; adds it then. `path` ends with `name`.
  bool hideDirectory(const std::string& path, const std::string& name);
  /// Adds all that is in a directory, except what is shown.
  void hideAll(const std::string& directory, std::string_view kind);
  /// Adds a file that holds a secret. `path` ends with `name`. `git`: it is in a git directory.
  void hideFile(std::string path, const std::string& name, bool git = false);
  /// Adds a file that hideFile() added when it had the same content.
  void hideKnown(std::string path, const std::string& name);
  /// Adds a link with a secret name, and the file that has this name through it. `hold_links`: also the links on the
  /// way.
  void hideLink(std::string path, const std::string& name, bool hold_links);
  /// Adds the git configurations among the files and links of a directory, and what they include, without their
  /// credentials. `git`: the directory is a git directory. Those beyond a limit are hidden. What git would refuse is
  /// judged as any other file; only the configuration of a git directory and copies of it are hidden then.
  void redactConfigs(const std::string& directory, const std::vector<std::string>& files,
                     const std::vector<std::string>& links, bool git);

  /// Whether `path` is what git writes as the configuration of a git directory, or is closed to us.
  [[nodiscard]] bool isRepositoryConfig(const std::string& path);

  /// Whether a payload, which is the same user, may give itself access to what is closed to us. True if that is
  /// unknown.
  [[nodiscard]] bool mayOpen(const std::string& path) const;
  /// How many files were read.
  [[nodiscard]] std::size_t reads() const { return reads_; }

 private:
  /// Adds one file that may be a configuration; returns the files that it includes.
  std::vector<std::string> redactConfig(const std::string& config, bool in_git_directory);
  [[nodiscard]] bool isRegular(const std::string& path) const;
  [[nodiscard]] bool isShown(const std::string& path) const;
  [[nodiscard]] policy::SecretJudgement judge(const std::string& path, const std::string& name, bool directory) const;
  /// Why the file `path` is secret under this judgement; "": it is not.
  std::string whySecret(const std::string& path, const policy::SecretJudgement& judged);
  void add(std::string path, std::string why);

  struct FileText {
    std::string text;
    std::uint64_t size = 0;  ///< of the file
    bool regular = false;
  };
  /// The first bytes of a regular file; nothing of anything else. nullopt: it is closed to us, but not to a payload
  /// that changes its mode.
  std::optional<FileText> beginning(const std::string& path, std::size_t bytes);

  const sys::RootDir& root_;
  const std::string& workspace_;
  const policy::OutsideLinks outside_;
  const std::vector<std::string>& shown_;
  plan::WorkspaceScan& found_;
  std::size_t reads_ = 0;
  std::map<std::string, std::string> configs_;  ///< of git, which redactConfigs() has read: what is shown of them
  std::set<std::string> read_configs_;          ///< with the directory that each was read from
  std::map<std::string, std::vector<std::string>> included_;  ///< by configuration, also those that git would refuse
};

}  // namespace caisson::host
