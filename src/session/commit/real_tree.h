// The real workspace as a commit sees it: looked at name by name, never through a link.
//
// A directory that is a link in the real workspace would let a commit of `docs/hooks/x` land in `.git/hooks/x`.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

sys::FileInfo fileInfoOf(const struct stat& status);

/// The device of a directory, if its file system is known to keep times finer than a second; else 0.
std::uint64_t preciseDevice(int directory);
/// Whether the change time may be of a file system that has whole seconds, or every other one, only. `precise`: a
/// preciseDevice().
inline bool isCoarse(const sys::FileInfo& info, std::uint64_t precise) {
  return info.changed_ns % 1'000'000'000 == 0 && (precise == 0 || info.device != precise);
}
/// Whether something changed after `since_ns`, or perhaps did: a coarse time is that of the second's beginning.
inline bool isLater(const sys::FileInfo& info, std::int64_t since_ns, std::uint64_t precise) {
  constexpr std::int64_t kCoarsest = 2'000'000'000;
  return info.changed_ns + (isCoarse(info, precise) ? kCoarsest : 0) > since_ns;
}

/// Whether an object of the workspace is as a commit of this session left it.
using IsOurs = std::function<bool(const std::string& path, const sys::FileInfo& info)>;

/// The directory `at` below `root`. `path`: where it is in the workspace, for `ours`.
struct DirectoryToCheck {
  const sys::RootDir& root;
  std::string at, path;
  /// It was just moved, which sets its own change time: only what is below counts, also files that are open for
  /// writing.
  bool moved = false;
};
/// Whether the directory or anything below was changed after `since_ns`, or cannot be read. What is moved into a
/// directory has a new change time itself, and so has the directory. Objects for which `ours` returns true do not
/// count.
bool isChangedSince(const DirectoryToCheck& directory, std::int64_t since_ns, const IsOurs& ours);

/// Like RealTree::isOpenForWriting(), for the file `name` in `directory`, or an open file.
bool isOpenForWriting(int directory, const std::string& name);
bool isOpenForWriting(int file);

class RealTree {
 public:
  explicit RealTree(const sys::RootDir& root) : root_(root), precise_(preciseDevice(root.descriptor())) {}

  [[nodiscard]] const sys::RootDir& root() const { return root_; }
  /// As isLater() and isCoarse(), for an object of this tree.
  [[nodiscard]] bool isLater(const sys::FileInfo& info, std::int64_t since_ns) const {
    return session::isLater(info, since_ns, precise_);
  }
  [[nodiscard]] bool isCoarse(const sys::FileInfo& info) const { return session::isCoarse(info, precise_); }

  /// The directory that holds `path`, reached without following links; `name` is set to the path's last part. The
  /// descriptor is valid until the next call. ENOTDIR or ELOOP when a parent is a link or not a directory, ENOENT when
  /// it is missing; without errno when it is another one than pin() found.
  Result<int> parentOf(const std::string& path, std::string& name);
  /// What a directory gives to the names that are made in it.
  struct ParentFacts {
    uid_t uid = 0;
    gid_t gid = 0;
    bool gives_group = false;        ///< its setgid bit
    bool gives_access_list = false;  ///< a default access list, which a rename does not apply
  };
  /// From now on, parentOf() returns only the directory that is there now. No effect if there is none.
  void pin(const std::string& directory);
  /// The facts of the directory that parentOf() returned last.
  Result<ParentFacts> parentFacts();
  /// Drops the cached directory of parentOf(). Call after directories were replaced or moved.
  void forget() { parent_.reset(); }

  /// The object at `path`, or nothing. An error when a parent is a link or not a directory.
  Result<std::optional<sys::FileInfo>> look(const std::string& path);
  /// Writes a file's pages, so that a later change through a mapping of a program sets its times: a page that is dirty
  /// already is changed without a trace. Errors are ignored; what cannot be opened cannot be compared either.
  void syncFile(const std::string& path);
  /// The same for everything on the file system.
  void syncAll();
  /// Whether a program has the file open for writing, perhaps only by a mapping: a page that was dirty before the
  /// session began can be changed without a trace. False where that cannot be found out: of files of others, and where
  /// the file system has no leases.
  bool isOpenForWriting(const std::string& path);
  /// The request replaces the file also if a program has it open for writing.
  void acceptWriters(const std::string& path) { writers_accepted_.insert(path); }
  [[nodiscard]] bool acceptsWriters(const std::string& path) const { return writers_accepted_.contains(path); }

  struct DirectoryInfo {
    sys::FileInfo info;
    bool mounted = false;  ///< on another mount than the workspace
  };
  /// The directory at `path`; "" is the workspace itself. Nothing if there is none, or a link is on the way.
  std::optional<DirectoryInfo> lookAtDirectory(const std::string& path);

 private:
  const sys::RootDir& root_;
  const std::uint64_t precise_;
  sys::Fd parent_;  ///< paths come sorted, so that neighbours share their directory
  std::string parent_path_;
  std::optional<ParentFacts> parent_facts_;
  bool synced_ = false;  ///< by syncAll()
  std::unordered_set<std::string> writers_accepted_;
  std::unordered_map<std::string, std::pair<std::uint64_t, std::uint64_t>> pinned_;  ///< device and inode
};

}  // namespace caisson::session
