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
  bool complete = true;  ///< of one layer; sizeOfFrozen() does not set it
};

/// Measures a layer that this process cannot read completely, in a helper process (supervise/closed_tree.h). nullopt if
/// that fails or takes more than two seconds.
std::optional<LayerSize> measureInHelper(int layer);

/// The sum over frozen layers, those of checkpoints included; each is measured once and its figures are kept. `closed`
/// measures a layer that this process cannot read completely or in time; unless that is complete, it is measured again
/// next time.
LayerSize sizeOfFrozen(const SessionPaths& paths, const Metadata& metadata,
                       const std::function<std::optional<LayerSize>(int layer)>& closed = measureInHelper);
/// Measures the upper layer now. Too small if neither this process nor a helper can read it completely in time.
LayerSize sizeOfUpper(const SessionPaths& paths, const Metadata& metadata);

}  // namespace caisson::session
