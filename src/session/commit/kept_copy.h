// Copies of host objects that are complete enough to be put back: content, permissions, access lists, `user.*`
// attributes, times of change, and everything in a directory.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/error.h"

namespace caisson::session {

/// Copies the file, link or directory `name` in `from` to the new `as` in `to`, never through a link. Hard links become
/// separate files, holes stay holes. `path`: for errors. An error for devices, for what cannot be read, and for trees
/// that are deeper than 200 directories; a part of the copy may be left.
struct CopiedFile {
  std::int64_t changed_ns = 0, modified_ns = 0;
  std::uint64_t size = 0;
  bool settled = false;  ///< it was not modified shortly before: a later change has other times
};
/// The files of a copy as they were before they were read, by path.
using CopiedFiles = std::unordered_map<std::string, CopiedFile>;
Result<void> copyForKeeping(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                            CopiedFiles* files = nullptr);
/// Copies the content, the rights and the times of an open file to a new one.
Result<void> copyOpenFile(int source, int file, const std::string& path);

/// Removes the original `name` of the copy `as`, file by file. What a program changed or made in it since is copied
/// first (of a file that it writes to all the time, what it has when it is removed), and a directory is only removed
/// when it is empty, so that nothing new is lost. `files`: of the copy; where it has no entry, contents are compared.
Result<void> removeCopied(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                          const CopiedFiles& files);
/// After a removeCopied() that failed, or a rename: puts everything of the copy `as` that the original `name` in `to`
/// lacks back to it.
Result<void> putBackCopied(int from, const std::string& as, int to, const std::string& name, const std::string& path);

}  // namespace caisson::session
