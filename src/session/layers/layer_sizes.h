// How much a session keeps on disk.
#pragma once

#include <cstdint>

#include "session/store/metadata.h"
#include "session/store/place.h"

namespace caisson::session {

struct LayerSize {
  std::uint64_t bytes = 0, inodes = 0;
};

/// Frozen layers and checkpoints. Measured once per layer; the figures are kept beside them.
LayerSize sizeOfFrozen(const Place& place, const Metadata& metadata);
LayerSize sizeOfUpper(const Place& place, const Metadata& metadata);

}  // namespace caisson::session
