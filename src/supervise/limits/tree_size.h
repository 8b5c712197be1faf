// Measures a directory tree on disk while a payload may be changing it.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

namespace caisson::supervise {

struct TreeSize {
  std::uint64_t bytes = 0;   ///< allocated, so a sparse file counts its actual blocks
  std::uint64_t inodes = 0;  ///< without the top directory
  bool hidden = false;       ///< some files could not be measured: in an unreadable directory, or too deep
};

/// Sums up the tree below `directory` (or the file, if it is one). Follows no link. Stops when a bound is exceeded.
/// With `since`, counts only what was written (bytes) or created (inodes) from then on, by ctime, which a payload
/// cannot set back.
TreeSize measureTree(int directory, std::uint64_t most_bytes, std::uint64_t most_inodes,
                     const std::optional<timespec>& since);

}  // namespace caisson::supervise
