// Reads many paths below one root, in order: neighbours share the descriptor of their directory, so that each look is
// one system call.
//
// Resolves as RootDir does. A directory that is renamed meanwhile is still read, under its old path: it cannot be
// outside the root, unless something outside the sandbox moved it there.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::sys {

struct OpenedFile {
  Fd file;
  FileInfo info;
};

class PathReader {
 public:
  /// `root` must outlive the reader.
  explicit PathReader(const RootDir& root) : root_(&root) {}

  /// Of the object itself, not of a link's target. Paths are relative, without `.`, `..` and empty parts.
  Result<FileInfo> stat(const std::string& path);
  /// The text of a link; EINVAL if the object is not a link.
  Result<std::string> readLink(const std::string& path);
  /// Opens a regular file for reading. Never follows a final link and never waits for the other end of a FIFO. For
  /// trees in which no payload can make a device: the type is checked once it is open.
  Result<OpenedFile> open(const std::string& path);

  /// Forgets the cached directory, so that the next path is resolved from the root again.
  void forget() { known_ = false; }

 private:
  /// The descriptor of the path's directory, from the cache if the last path had the same one. `name` points to the
  /// last part of `path`.
  Result<int> parentOf(const std::string& path, const char*& name);

  const RootDir* root_;
  bool known_ = false;             ///< `directory_` is cached
  std::string directory_;          ///< the cached directory, relative to the root
  std::optional<RootDir> parent_;  ///< nothing: the directory could not be opened
  std::optional<Error> problem_;   ///< why it could not
};

}  // namespace caisson::sys
