// What the directories of the real workspace were when a session began.
//
// A commit replaces and deletes by path. After `mv src old; mv other src` on the host, the path leads to files that the
// session never saw, and their change times are old: a rename leaves the times of everything below. So the directories
// on the way are compared with what they were, by inode number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "session/store/metadata.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Whether a command of the session may run while its directories are recorded.
enum class CommandsRun : std::uint8_t { no, perhaps };
/// Records the directories of the workspace, those near its top first: at most 10,000, and the names of at most 200,000
/// entries. Errors are ignored: what is not recorded is judged by change times, and is a conflict where these leave a
/// doubt. May be called after the session began: a directory that may have been moved since is left out.
void recordDirectories(const sys::RootDir& session, const Metadata& metadata, CommandsRun commands = CommandsRun::no);
/// Copies the record to a fork, which began at the same moment.
void copyDirectories(const sys::RootDir& from, const sys::RootDir& to);

class DirectoryBaseline {
 public:
  struct Directory {
    std::uint64_t inode = 0;
    std::int64_t changed_ns = 0;  ///< 0: it changed just before the session began, or later
    mode_t mode = 0;
  };
  /// What recordDirectories() wrote for this session; empty if there is none.
  static DirectoryBaseline load(const sys::RootDir& session, const Metadata& metadata);

  /// Whether the workspace is the directory that the session began on. Inode numbers do not tell: another file system
  /// has the same ones.
  [[nodiscard]] bool isOfWorkspace() const { return is_of_workspace_; }

  /// The directory that was at `path` ("" is the workspace itself), or null if that is not known.
  [[nodiscard]] const Directory* find(const std::string& path) const;
  /// Whether something was at `path`; false if that is not known.
  [[nodiscard]] bool hasName(const std::string& path) const;

 private:
  bool is_of_workspace_ = true;
  std::vector<std::uint64_t> names_;  ///< sorted hashes of paths
  std::unordered_map<std::string, Directory> directories_;
};

}  // namespace caisson::session
