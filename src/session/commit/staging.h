// Private copies of what a commit will write, on the file system of the real workspace: putting them in place is a
// rename, so nothing that a payload does afterwards changes what arrives.
//
// The staging directory lies in the session's directory (0700, shown to no sandbox). Where that is another mount than
// the workspace's, it is a hidden directory in the workspace itself, if we have permission to create it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "session/commit/host_attributes.h"
#include "sys/root_dir.h"

namespace caisson::session {

struct StagedObject {
  std::uint64_t device = 0, inode = 0;
  std::int64_t modified_ns = 0;
  mode_t mode = 0;  ///< of a file: FileRights::mode, or less if it cannot have the group (takeOwner()); else 0
};

/// Who may use a staged file, and what else the host attached to the file that it replaces.
struct FileRights {
  mode_t mode = 0;
  HostAttributes attributes;
  std::optional<HostOwner> owner;  ///< nothing: it replaces no file
};

struct ReadFile {
  std::uint64_t size = 0;
  Digest sha256{};
};

/// How many bytes of holes a commit reads in all. A hole costs a program nothing, not even its disk limit, but to hash
/// it takes as long as data.
inline constexpr std::uint64_t kMaxHoleBytes = 4ULL << 30;

/// Reads and hashes at most `size` bytes of `source`, the size it had when it was opened, so that a file which grows
/// meanwhile ends; of one that was cut meanwhile, what is left. Copies what was hashed to `to` unless that is -1; holes
/// stay holes. `path`: for errors.
Result<ReadFile> readOnce(int source, std::uint64_t size, int to, const std::string& path);

class Staging {
 public:
  /// Makes an empty staging directory, after removing what a crash left of an earlier one. It has no access lists, so
  /// that what is staged inherits none.
  static Result<Staging> create(const sys::RootDir& session, const sys::RootDir& real);
  /// Opens the staging directory that an interrupted commit left.
  static Result<Staging> open(const sys::RootDir& session, const sys::RootDir& real);
  /// Removes the staging directory with everything in it, also after a crash. `real` may be null when the workspace is
  /// gone: then one in the workspace stays, with its name in the session.
  static Result<void> remove(const sys::RootDir& session, const sys::RootDir* real);

  [[nodiscard]] int descriptor() const { return directory_.get(); }
  /// Whether sandboxes on the workspace can see the staging directory.
  [[nodiscard]] bool isInWorkspace() const { return in_workspace_; }
  // `name`: in the staging directory, new; `path`: in the workspace, for errors.
  /// Copies `source` by readOnce(), whose result is stored in `read`. On an error a part of the copy may be left.
  Result<StagedObject> addFile(const std::string& name, int source, std::uint64_t size, const FileRights& rights,
                               ReadFile& read, const std::string& path) const;
  Result<StagedObject> addContent(const std::string& name, std::string_view content, const FileRights& rights,
                                  const std::string& path) const;
  Result<StagedObject> addLink(const std::string& name, const std::string& target, const std::string& path) const;
  Result<StagedObject> addDirectory(const std::string& name, mode_t mode, const std::string& path) const;
  /// Removes one staged object.
  Result<void> drop(const std::string& name) const;
  /// Waits until everything staged is on the disk.
  Result<void> sync() const;

 private:
  Staging(sys::Fd directory, bool in_workspace) : directory_(std::move(directory)), in_workspace_(in_workspace) {}
  sys::Fd directory_;
  bool in_workspace_;
};

}  // namespace caisson::session
