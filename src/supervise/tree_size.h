// How much a directory tree holds on disk, measured while a payload may be changing it.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

namespace caisson::supervise {

struct TreeSize {
  std::uint64_t bytes = 0;   ///< allocated, so a sparse file counts what it really takes
  std::uint64_t inodes = 0;  ///< without the top directory
  bool hidden = false;       ///< something lies where we cannot look: in a closed directory, or too deep
};

/// Adds up the tree below `directory` (or the file, if it is one). No link is followed. Stops as soon as a bound is
/// exceeded. With `since` only what was written (bytes) or made (inodes) from then on counts: times of change are the
/// kernel's, and a payload cannot set them back.
TreeSize measureTree(int directory, std::uint64_t most_bytes, std::uint64_t most_inodes,
                     const std::optional<timespec>& since);

}  // namespace caisson::supervise
