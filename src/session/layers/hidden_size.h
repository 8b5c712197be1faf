// What deleting or overwriting hides in frozen layers, so that it does not count against the disk quota.
//
// The state before each command is frozen for a rollback. Files that a later command deletes stay in the frozen layer
// until layers are merged; without this a session at its limit could not make room.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "session/layers/layer_sizes.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// The size of files in `layers` (uppermost first) that a layer above them hides. Files in the layers `counted`, which
/// a checkpoint needs, are not added. Stops when it has worked for `work` of processor time, or at the deadline; what
/// was not seen until then counts as not hidden.
LayerSize sizeOfHidden(const sys::RootDir& store, const std::vector<std::string>& layers,
                       const std::set<std::string>& counted, std::chrono::nanoseconds work,
                       std::chrono::steady_clock::time_point deadline);

}  // namespace caisson::session
