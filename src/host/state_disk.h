// What the file system of CAISSON_HOME can hold.
#pragma once

#include <string>

#include "plan/plan.h"

namespace caisson::host {

/// Whether plans need probeStateDisk(): a directory or, with overlay_store `prefer_disk`, the overlay may be on disk.
/// Not for overlay_store `disk`, which has no alternative: the launch fails if the disk cannot hold it.
bool mayUseStateDisk(const policy::Policy& policy);

/// Checks the directory `runs` of `home`, or the nearest existing one above it. Changes nothing.
plan::StateDisk probeStateDisk(const std::string& home);

/// Why a directory cannot hold the upper layer of an overlay; empty if it can. An O_PATH descriptor does not support
/// the attribute check.
std::string whyNoOverlay(int directory);

/// Whether a directory lies on an overlay, as the root of most containers.
bool liesOnOverlay(int directory);

}  // namespace caisson::host
