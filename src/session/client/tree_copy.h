// Copies a file or a tree from one directory to another, one of which belongs to a payload.
//
// Both sides may change during the copy. Source files are opened through RootDir and read up to the size they had then.
// The target is walked name by name without following links, and a file appears by rename, so an existing link is
// replaced or rejected but never written through.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "caisson/session.h"
#include "sys/root_dir.h"

namespace caisson::session {

struct CopySide {
  const sys::RootDir* root = nullptr;
  std::string path;    ///< below the root: the source or the target
  uid_t identity = 0;  ///< whose rights apply there; 0: the caller's
};

struct TreeCopyOptions {
  /// Skip links whose target could be outside the copied tree.
  bool links_stay_inside = false;
  /// Set the exact mode of files, ignoring the process's umask; directories always get the umask.
  bool exact_mode = false;
  bool keep_times = false;  ///< files keep the time of their last change
  /// Paths below the top that are not copied, without being listed in the report.
  std::function<bool(const std::string&)> skip;
  /// Why an entry below the top, given by its path below the target's root, is held back; "" if it is not. `link`: what
  /// a link leads to.
  std::function<std::string(const std::string& path, sys::FileType type, const std::string& link)> hold_back;
  /// Why an entry of the source, given by its path below the source's root, may not be copied; the top too, for which
  /// it is an error.
  std::function<std::string(const std::string& path)> withhold;
  /// Why an entry, given in the same way, may not be copied, whatever its kind; the top too, for which it is an error.
  std::function<std::string(const std::string& path, sys::FileType type)> refuse;
  /// Copies this entry of the top directory alone: of a directory only itself. The top directory is not listed.
  std::optional<std::string> only;
  /// Called before a file with this many bytes is written; an error ends the copy.
  std::function<Result<void>(std::uint64_t)> reserve;
};

/// Copies a file or tree. An error at the top, or one that every further file would hit too (a full disk), ends the
/// copy; other entries that cannot be copied are listed in the report.
Result<CopyReport> copyTree(const CopySide& from, const CopySide& to, const TreeCopyOptions& options);

/// Whether a link in a directory `depth` levels below the top can only lead below the top, if all other links there
/// pass this test too: relative, and `..` only at the beginning, at most `depth` times.
bool staysInside(std::string_view target, std::size_t depth);

}  // namespace caisson::session
