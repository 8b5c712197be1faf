// How much a session keeps on disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

struct LayerSize {
  std::uint64_t bytes = 0, inodes = 0;
  bool complete = true;
};

/// Measures a layer that this process cannot read completely, in a helper process (supervise/closed_tree.h).
std::optional<LayerSize> measureInHelper(int layer);

/// Frozen layers and checkpoints. Measured once per layer; the figures are kept beside them. `closed` measures a layer
/// that this process cannot read completely; unless it returns a complete size, the layer is measured again next time.
LayerSize sizeOfFrozen(const SessionPaths& paths, const Metadata& metadata,
                       const std::function<std::optional<LayerSize>(int layer)>& closed = measureInHelper);
LayerSize sizeOfUpper(const SessionPaths& paths, const Metadata& metadata);

}  // namespace caisson::session
