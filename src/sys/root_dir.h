// A directory handle that confines path resolution to that directory.
//
// All host-side access to trees that a payload can write goes through this type: session files, overlay layers, a root
// under construction, teardown. Links on the way resolve inside the root, magic links are refused, the last component
// is followed by enter() and makeDirs() only. Doing the same by string path is the most common cause of sandbox escapes
// (runc CVE-2021-30465, -2024-45310, -2025-31133, -2025-52565; crun CVE-2025-24965).
//
//   auto root = sys::RootDir::open(session_directory, {.known_as = "/workspace"});
//   auto text = root->readFile("src/main.py", 1 << 20);          // or "/workspace/src/main.py"
//   if (!text && text.error().code == ErrorCode::path_escapes) raiseFilesystemIndicator(text.error());
//   root->removeTree("upper");
//
// Guarantees: no operation accesses an object outside the root, whatever links, mounts, FIFOs or renames a payload
// plants before or during the call. Opening never blocks and never opens a device. Removal follows no link, enters no
// other mount, uses a bounded number of descriptors and no recursion.
// Not guaranteed: that operations succeed against a racing payload; that a tree which is still being written is empty
// afterwards; anything about the path given to open(), which the caller must trust.
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

/// How to open a file. `flags` accepts the access mode and O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_PATH; anything else is
/// an error. Devices, sockets and links open only with O_PATH.
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
  std::uint64_t blocks = 0;  ///< allocated 512-byte blocks, smaller than `size` for sparse files
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
  /// Name of the root in messages, and the prefix that absolute requests must have. Empty: the path it was opened by.
  std::string known_as;
  Stage stage = Stage::state;  ///< of the errors
  bool walk_by_hand = false;   ///< never use openat2; lets tests cover the fallback
  /// A link on the way that leads out of the root is an error (path_escapes), instead of being resolved as if the root
  /// were "/". Absolute targets below `known_as` are inside.
  bool refuse_links_out = false;
};

class RootDir {
 public:
  /// Opens the directory `path`, which the caller must trust; links in it are followed.
  static Result<RootDir> open(const std::string& path, RootDirOptions options = {});
  /// Takes ownership of a directory descriptor (O_PATH is enough). With an empty `known_as`, absolute requests fail.
  static Result<RootDir> adopt(Fd directory, RootDirOptions options);

  /// Copies the descriptor of a directory.
  static Result<RootDir> share(int directory, RootDirOptions options);

  /// The descriptor of the root itself: O_PATH, unless adopt() got another kind.
  [[nodiscard]] int descriptor() const { return root_.get(); }
  [[nodiscard]] const std::string& knownAs() const { return options_.known_as; }
  /// Sets RootDirOptions::refuse_links_out.
  void refuseLinksOut() { options_.refuse_links_out = true; }

  /// Returns the directory `relative` as a new root. Links, also a final one, resolve inside this root, so an image's
  /// `var/run -> /run` works.
  [[nodiscard]] Result<RootDir> enter(std::string_view relative) const;

  /// Opens without following a final link and without blocking; close-on-exec. An error if the file is not of an
  /// accepted type. A FIFO stays non-blocking.
  [[nodiscard]] Result<Fd> openFile(std::string_view relative, OpenOptions options) const;
  /// Creates every missing directory of the path; `mode` is subject to the umask. Does not change existing ones.
  /// Follows links to directories, also a final one, inside this root.
  [[nodiscard]] Result<void> makeDirs(std::string_view relative, mode_t mode) const;
  /// Reads a whole regular file. An error if it is longer than `max_bytes`: a sparse file could exhaust our memory.
  [[nodiscard]] Result<std::string> readFile(std::string_view relative, std::uint64_t max_bytes) const;
  /// Creates or replaces the file atomically, even across a crash: temporary file, fsync, rename, fsync. Replaces a
  /// link or FIFO of that name instead of writing through it. The umask does not apply to `mode`.
  [[nodiscard]] Result<void> writeFileAtomic(std::string_view relative, std::string_view data, mode_t mode) const;
  /// Like writeFileAtomic() but without fsync: atomic for concurrent readers, not across a crash of the machine.
  [[nodiscard]] Result<void> replaceFile(std::string_view relative, std::string_view data, mode_t mode) const;
  /// Like replaceFile(), without the flush with which ext4 protects a file that was renamed over another: after a crash
  /// of the machine it may be empty. Call makeDurable() soon. Returns the replaced file, if there was one: closing it
  /// frees its blocks, which may wait for the disk.
  [[nodiscard]] Result<Fd> exchangeFile(std::string_view relative, std::string_view data, mode_t mode) const;
  /// Completes replaceFile(): fsyncs the file and its directory.
  [[nodiscard]] Result<void> makeDurable(std::string_view relative) const;
  /// Gives the owner full access to the directory `relative` itself, which must belong to this user. A failed chmod is
  /// not reported; a later access then fails.
  [[nodiscard]] Result<void> openToOwner(std::string_view relative) const;
  /// Of the object itself, not of a link's target.
  [[nodiscard]] Result<FileInfo> stat(std::string_view relative) const;
  /// The text of a link, which may lead anywhere; EINVAL if the object is not a link.
  [[nodiscard]] Result<std::string> readLink(std::string_view relative) const;
  /// Sorted by name. An error if there are more than `max_entries`.
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view relative,
                                                         std::size_t max_entries = 1'000'000) const;
  /// Both paths are inside this root. Replaces an existing `to` only if `replace` is set, else fails with EEXIST.
  [[nodiscard]] Result<void> rename(std::string_view from, std::string_view to, bool replace) const;
  /// Removes one file, link or empty directory. Not an error if missing. A path across a mount is an error (EXDEV).
  [[nodiscard]] Result<void> remove(std::string_view relative) const;
  /// Removes the whole tree; "" empties the root and keeps it. Not an error if missing. Removes as much as possible and
  /// returns the first failure. A mount below is an error and is not touched.
  [[nodiscard]] Result<void> removeTree(std::string_view relative) const;

 private:
  /// The target of a request: `name` in the directory `parent`, or `parent` itself if `name` is empty.
  struct Place {
    Fd parent;
    std::string name;
  };

  RootDir(Fd root, RootDirOptions options) : root_(std::move(root)), options_(std::move(options)) {}
  /// Resolves a directory of a parsed request, as the options say.
  Result<Fd> resolve(std::string_view call, std::string_view relative, const std::string& directory,
                     bool stay_on_mount = false) const;
  /// Parses the request and resolves its directory. `call` is for errors; `stay_on_mount`: another mount on the way is
  /// an error.
  Result<Place> locate(std::string_view call, std::string_view relative, bool stay_on_mount = false) const;
  /// Like locate(), for calls that need a name: an error if the request is the root or ends in `..`.
  Result<Place> locateName(std::string_view call, std::string_view relative, bool stay_on_mount = false) const;
  enum class Put : std::uint8_t { durable, replace, exchange };
  /// Writes a temporary file and moves it to the target's name. `durable`: with fsync of both. Returns what
  /// exchangeFile() returns.
  Result<Fd> putFile(std::string_view relative, std::string_view data, mode_t mode, Put how) const;
  /// Opens an existing object after checking its type, even if a payload swaps its name meanwhile.
  Result<Fd> openPlace(const Place& place, std::string_view relative, const OpenOptions& options) const;
  /// Returns an error of a failed call on `object`, with a hint for a full or read-only file system.
  std::unexpected<Error> refuse(std::string_view call, std::string_view object, int sys_errno,
                                std::string_view reason = {}) const;

  Fd root_;
  RootDirOptions options_;
};

}  // namespace caisson::sys
