// How much a session keeps on disk.
#pragma once

#include <cstdint>

#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

struct LayerSize {
  std::uint64_t bytes = 0, inodes = 0;
};

/// Frozen layers and checkpoints. Measured once per layer; the figures are kept beside them.
LayerSize sizeOfFrozen(const SessionPaths& paths, const Metadata& metadata);
LayerSize sizeOfUpper(const SessionPaths& paths, const Metadata& metadata);

}  // namespace caisson::session
