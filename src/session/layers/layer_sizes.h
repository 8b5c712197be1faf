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
};

/// Measures a layer with directories that a payload has closed, in a user namespace in which their owner may look.
/// This process has to be single-threaded, and stays in that namespace.
std::optional<LayerSize> measureClosed(int layer);
/// The same in a child process.
std::optional<LayerSize> measureClosedInChild(int layer);

/// Frozen layers and checkpoints. Measured once per layer; the figures are kept beside them. `closed`: for callers that
/// may not make a namespace.
LayerSize sizeOfFrozen(const SessionPaths& paths, const Metadata& metadata,
                       const std::function<std::optional<LayerSize>(int layer)>& closed = measureClosedInChild);
LayerSize sizeOfUpper(const SessionPaths& paths, const Metadata& metadata);

}  // namespace caisson::session
