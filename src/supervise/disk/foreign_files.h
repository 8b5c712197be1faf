// Files of subordinate ids in the stores of an ordinary caller.
//
// With root inside and subordinate ids, a payload gives files to ids that are neither the caller's nor inside the
// sandbox's reach from outside: the caller can enter no closed directory of theirs, and remove nothing from it. A child
// process in a user namespace with the same ids can. It only changes the owner; everything else is done afterwards, by
// the code that handles a payload's files anyway.
#pragma once

#include <string>

#include "base/error.h"
#include "supervise/limits/tree_size.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

/// Makes the caller the owner of all files below `directory`, and of itself, that belong to its subordinate ids.
/// Follows no link. Nothing for a root caller. An error if there are no subordinate ids, or after ten minutes.
Result<void> claimTree(int directory);
/// The same for the directory alone.
Result<void> claimDirectory(int directory);

/// RootDir::removeTree(). If files of subordinate ids prevent it, claims the tree first.
Result<void> removeForeignTree(const sys::RootDir& parent, const std::string& name);
/// RootDir::rename() of a directory without replacing. If it belongs to a subordinate id, claims it first.
Result<void> renameForeign(const sys::RootDir& parent, const std::string& from, const std::string& to);

}  // namespace caisson::supervise
