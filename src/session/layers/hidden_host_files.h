// Which files of the real directory a session does not show: secrets, denied paths and what cannot be searched.
//
// The mask layer hides what was there when the sandbox was mounted. Whatever reads the real directory for a client
// without the sandbox's mounts must also not show what the host made or changed since: it asks here. Readers:
//
//   reader                                      guarded by
//   LayerStack::open, readLink                  hides(), and the file must be the one that was looked up; used by
//     diff, its patches and renames, archives,  diff -p, export, the comparison of files, hasUncommittedChanges
//     comparisons of content
//   ContentDiff (patch)                         search() before the first patch, hides(), and hidesContent() of the
//                                               bytes that were read; sizes and names below a hidden directory are left
//                                               out
//   TarExport                                   hides(), hidesContent() of the beginning
//   CommitPlanner::isSame                       hides(), except for what a commit of this session left there
//   FileMerger                                  hides(), hidesContent() of the bytes that are merged
//   inspectRemoval, HeldPaths, HostDirectories  names and times of files only
//   Reversal (uncommit)                         names and times of files only; content goes back to the host alone
//   tier_files (landlock tier)                  a copy that is made without what the search hides
//   sendFiles (files of the running sandbox)    the supervisor's own search, and masks in the sandbox
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/workspace_scan.h"
#include "plan/hidden_names.h"
#include "session/store/metadata.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Why the content of a file is left out.
inline constexpr const char* kHiddenOnHost = "hidden on the host";

/// How the workspace of a session is searched for what it does not show.
host::ScanOptions searchOptions(const Metadata& metadata);

/// For one request of a client, in one thread: the first question searches the directory.
class HiddenHostFiles {
 public:
  /// `real`: the session's real directory; must outlive this.
  HiddenHostFiles(const sys::RootDir& real, const Metadata& metadata);

  /// Searches again. What is looked up before and did not change since is then judged as it is.
  void search();
  /// Whether the path or a directory above it is hidden: by its name, by a denied pattern, or by what the search found.
  [[nodiscard]] bool hides(const std::string& path, bool directory = false);
  /// Whether this content, of a file that hides() does not hide, makes it secret. `size`: of the file, of which `text`
  /// is the beginning.
  [[nodiscard]] bool hidesContent(const std::string& path, std::string_view text, std::uint64_t size) const;

 private:
  [[nodiscard]] bool isDenied(std::string_view path) const;
  /// Whether the name or the place alone says that it is secret.
  [[nodiscard]] bool isNamedSecret(const std::string& path, bool directory) const;

  const sys::RootDir& real_;
  std::string workspace_;
  host::ScanOptions options_;
  host::ScanCache cache_;
  std::optional<plan::HiddenNames> found_;  ///< by the last search
  bool all_hidden_ = false;                 ///< the directory could not be searched
};

}  // namespace caisson::session
