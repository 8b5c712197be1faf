// Copies a file or a tree from one directory to another, one of which belongs to a payload.
//
// Both sides may change during the copy. Source files are opened through RootDir and read up to the size they had then.
// The target is walked name by name without following links, and a file appears by rename, so a link that lies there,
// or that an earlier copy put there, is replaced or refused but never written through.
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
  std::string path;    ///< below the root: what is copied, or what it becomes
  uid_t identity = 0;  ///< whose rights apply there; 0: the caller's
};

struct TreeCopyOptions {
  /// Links whose target could lie outside the copied tree are left out.
  bool links_stay_inside = false;
  /// Sets the mode itself, instead of leaving it to the process's umask.
  bool exact_mode = false;
  /// Asked before a file of so many bytes of data is written; an error ends the copy.
  std::function<Result<void>(std::uint64_t)> reserve;
};

Result<CopyReport> copyTree(const CopySide& from, const CopySide& to, const TreeCopyOptions& options);

/// Whether a link in a directory `depth` levels below the top can only lead to places below the top, given that all
/// other links there pass this test too: relative, and `..` only at the beginning, at most `depth` times.
bool staysInside(std::string_view target, std::size_t depth);

}  // namespace caisson::session
