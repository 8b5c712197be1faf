// Which directory a name meant when it was given, so that another one in its place is noticed later.
//
// The file handle has the inode's number and generation, which the kernel never gives to another file, and works
// without privilege. A path alone is not enough: a payload that can write above it can rename the directory and put a
// link or another directory there. Device and inode are for file systems without stable handles; the device number may
// change at a reboot, and a removed inode's number is reused, so two such identities can be equal by mistake.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

struct FileIdentity {
  std::string handle;       ///< type and bytes, hexadecimal; empty: the file system has no stable handles
  std::string file_system;  ///< f_fsid, hexadecimal; empty: it has none
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string boot;  ///< the boot id, during which `device` is valid

  /// Whether this is the identity of no file.
  [[nodiscard]] bool empty() const { return inode == 0; }
  /// One line without the path, for storage.
  [[nodiscard]] std::string text() const;
  /// Reads text(); nullopt if it is malformed.
  static std::optional<FileIdentity> read(std::string_view text);
};

/// Of an open file; O_PATH is enough.
Result<FileIdentity> identityOf(int descriptor);

/// Whether both are the same file. An identity with a handle and one without are different.
bool isSameFile(const FileIdentity& one, const FileIdentity& other);

/// Opens a directory with O_PATH by its canonical path and follows no link in it: ELOOP if there is one now.
Result<Fd> openWithoutLinks(const std::string& path);

/// openWithoutLinks(), and an error (ErrorCode::directory_replaced) that names both if another directory has the path,
/// or a link leads to one. An empty `expected` accepts any directory. `hint`: how to accept what is there now.
Result<Fd> openKnown(const std::string& path, const FileIdentity& expected, std::string_view hint);

/// The id of this boot of the machine; empty if it cannot be read.
std::string bootId();

}  // namespace caisson::sys
