// Measures a directory tree on disk while a payload may be changing it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

namespace caisson::supervise {

struct TreeSize {
  std::uint64_t bytes = 0;   ///< allocated, so a sparse file counts its actual blocks
  std::uint64_t inodes = 0;  ///< without the top directory
  bool foreign = false;      ///< an object belongs to another user than TreeBounds::owner
  bool hidden = false;       ///< not complete: a directory was unreadable, or the time was up
};

struct TreeBounds {
  std::uint64_t bytes = ~0ULL - 1, inodes = ~0ULL - 1;  ///< stop once one is exceeded
  std::optional<timespec> since;  ///< count only bytes written and inodes made from then on, by ctime, which a payload
                                  ///< cannot set back
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::optional<uid_t> owner;  ///< note objects that belong to another one (TreeSize::foreign)
  bool give_to_owner = false;  ///< ... and make it their owner, and the group of the same number their group
  bool top_only = false;       ///< look at the directory itself only
  int reader = -1;             ///< the write end of a pipe: stop when its reader is gone
};

/// Sums up the tree below `directory` (or the file, if it is one). Follows no link. Uses a fixed number of descriptors
/// at any depth, and neither allocates nor locks: a copy of a process with threads may call it.
TreeSize measureTree(int directory, const TreeBounds& bounds);

}  // namespace caisson::supervise
