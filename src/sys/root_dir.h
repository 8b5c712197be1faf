// A directory that nothing resolved through it can leave.
//
// Every host-side touch of a tree that a payload could write goes through here: session files, overlay
// layers, a root under construction, teardown. Links met on the way resolve inside the root, magic links
// are refused, the last component is never followed. The same operations by string path are the largest
// class of escapes in this field (runc CVE-2021-30465, -2024-45310, -2025-31133, -2025-52565; crun
// CVE-2025-24965).
//
//   auto root = sys::RootDir::open(session_directory, {.known_as = "/workspace"});
//   auto text = root->readFile("src/main.py", 1 << 20);          // or "/workspace/src/main.py"
//   if (!text && sys::climbsOut(text.error())) raiseFilesystemIndicator(text.error());
//   root->removeTree("upper");
//
// Guarantees: no operation touches an object outside the root, whatever links, mounts, FIFOs or renames a
// payload plants before or during the call; opening never blocks and never opens a device; removal follows
// no link, enters no other mount, uses a bounded number of descriptors and no recursion.
// Not guaranteed: that a racing payload can't make an operation fail; that a tree which is still being
// written is empty afterwards; anything about the path given to open(), which the caller must trust.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

enum class FileType : std::uint8_t { unknown, regular, directory, link, fifo, socket, character_device, block_device };

std::string_view name(FileType type);

/// A set of file types: `{FileType::regular, FileType::directory}`.
class FileTypes {
 public:
  constexpr FileTypes(std::initializer_list<FileType> types) {
    for (const FileType type : types) bits_ |= 1U << static_cast<unsigned>(type);
  }
  [[nodiscard]] constexpr bool has(FileType type) const { return (bits_ >> static_cast<unsigned>(type) & 1U) != 0; }

 private:
  unsigned bits_ = 0;
};

/// How to open a file. `flags` takes the access mode and O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_PATH; anything else is
/// refused. Devices open only with O_PATH, sockets and links likewise.
struct OpenOptions {
  int flags = O_RDONLY;
  mode_t mode = 0600;
  FileTypes types = {FileType::regular};
};

struct FileInfo {
  FileType type = FileType::unknown;
  mode_t mode = 0;  ///< permission bits, setuid, setgid and sticky
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t blocks = 0;  ///< of 512 bytes, really allocated: sparse files show here
  std::uint64_t links = 0;
  std::uint64_t inode = 0;
  std::uint64_t device = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
};

struct DirectoryEntry {
  std::string name;
  FileType type = FileType::unknown;
};

struct RootDirOptions {
  /// What the root is called: in messages, and as the prefix that makes an absolute request an inside one.
  /// Empty: the path it was opened by.
  std::string known_as;
  Stage stage = Stage::state;  ///< of the errors
  bool walk_by_hand = false;   ///< never use openat2: the fallback, selectable so that tests cover it
};

class RootDir {
 public:
  static Result<RootDir> open(const std::string& path, RootDirOptions options = {});
  /// Takes over a descriptor of a directory (O_PATH is enough).
  static Result<RootDir> adopt(Fd directory, RootDirOptions options);

  /// An O_PATH descriptor of the root itself.
  [[nodiscard]] int descriptor() const { return root_.get(); }
  [[nodiscard]] const std::string& knownAs() const { return options_.known_as; }

  /// The directory `relative` as a root of its own. Links, a final one too, resolve inside this root:
  /// an image's `var/run -> /run` works.
  [[nodiscard]] Result<RootDir> enter(std::string_view relative) const;

  /// Opens without following a final link and without blocking; close-on-exec. What is there must be of a wanted type.
  /// A FIFO stays non-blocking.
  [[nodiscard]] Result<Fd> openFile(std::string_view relative, OpenOptions options) const;
  /// Makes every missing directory on the way; `mode` is subject to the umask. Existing ones are left as they are.
  [[nodiscard]] Result<void> makeDirs(std::string_view relative, mode_t mode) const;
  /// The whole regular file; one longer than `max_bytes` is an error, so that a sparse file can't fill our memory.
  [[nodiscard]] Result<std::string> readFile(std::string_view relative, std::uint64_t max_bytes) const;
  /// After a crash at any instant the file is as before or as after: temporary file, fsync, rename, fsync.
  /// A link or FIFO of that name is replaced, not written through.
  [[nodiscard]] Result<void> writeFileAtomic(std::string_view relative, std::string_view data, mode_t mode) const;
  /// The same for who reads it meanwhile, but not after a crash of the machine: nothing waits for the disk.
  [[nodiscard]] Result<void> replaceFile(std::string_view relative, std::string_view data, mode_t mode) const;
  /// What replaceFile left undone: waits until the file and its name are on the disk.
  [[nodiscard]] Result<void> makeDurable(std::string_view relative) const;
  /// Gives the owner every right to the directory `relative` itself, which must be this user's.
  [[nodiscard]] Result<void> openToOwner(std::string_view relative) const;
  [[nodiscard]] Result<FileInfo> stat(std::string_view relative) const;
  [[nodiscard]] Result<std::string> readLink(std::string_view relative) const;
  /// Sorted by name. More than `max_entries` is an error.
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view relative,
                                                         std::size_t max_entries = 1'000'000) const;
  /// Both ends inside this root. Replaces an existing `to` only when asked to.
  [[nodiscard]] Result<void> rename(std::string_view from, std::string_view to, bool replace) const;
  /// One file, link or empty directory. Missing is fine.
  [[nodiscard]] Result<void> remove(std::string_view relative) const;
  /// The whole tree; "" empties the root and keeps it. Missing is fine. Whatever can be removed is, and the first
  /// thing that could not is the error: a mount below is reported and left alone.
  [[nodiscard]] Result<void> removeTree(std::string_view relative) const;

 private:
  /// Where a request leads: `name` in the directory `parent`, or `parent` itself when `name` is empty.
  struct Place {
    Fd parent;
    std::string name;
  };

  RootDir(Fd root, RootDirOptions options) : root_(std::move(root)), options_(std::move(options)) {}
  Result<Place> locate(std::string_view call, std::string_view relative, bool stay_on_mount = false) const;
  /// As locate(), for calls that need a name to act on.
  Result<Place> locateName(std::string_view call, std::string_view relative, bool stay_on_mount = false) const;
  Result<void> putFile(std::string_view relative, std::string_view data, mode_t mode, bool durable) const;
  Result<Fd> openPlace(const Place& place, std::string_view relative, const OpenOptions& options) const;
  std::unexpected<Error> refuse(std::string_view call, std::string_view object, int sys_errno,
                                std::string_view reason = {}) const;

  Fd root_;
  RootDirOptions options_;
};

/// Whether the error says that the *requested* path leaves the root (`..` above it, absolute outside).
/// SPEC F5 raises that as a FILESYSTEM indicator; links that point outside are not requests and give no such error.
bool climbsOut(const Error& error);

}  // namespace caisson::sys
