// Several layers of an overlay made into one that shows the same, without copying what files hold.
//
// The layers are in the kernel's own format (`userxattr`): a character device 0/0 is a deletion, a directory with
// user.overlay.opaque = "y" hides what lies below it. Whatever is no directory is linked, so the new layer costs
// directories and names only. The layers must be at rest: nothing may be mounted over them as an upper directory.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::sys {

/// Makes the directory `into` of `store` from the directories `layers` (uppermost first), which are left as they are.
/// Deletions are kept: what lies below the last layer stays hidden. A layer that is missing counts as empty. On an
/// error `into` may be there in part.
Result<void> mergeLayers(const RootDir& store, std::span<const std::string> layers, const std::string& into);

}  // namespace caisson::sys
