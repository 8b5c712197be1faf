// Merges several overlay layers into one with the same content, without copying file data.
//
// The layers use the kernel's format (`userxattr`): a character device 0/0 is a deletion, a directory with
// user.overlay.opaque = "y" hides what is below it. Everything but directories is hard-linked, so the new layer costs
// only directories and names. No mounted overlay may use the layers as its upper directory.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::sys {

/// Creates the directory `into` of `store` from the directories `layers` (uppermost first), which are not changed.
/// Keeps deletions, so what is below the last layer stays hidden. A missing layer counts as empty. On error `into` may
/// exist partially.
Result<void> mergeLayers(const RootDir& store, std::span<const std::string> layers, const std::string& into);

}  // namespace caisson::sys
