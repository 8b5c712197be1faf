// Copies of host objects that are complete enough to be put back: content, permissions, access lists, `user.*`
// attributes, times of change, and everything in a directory.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::session {

/// Copies the file, link or directory `name` in `from` to the new `as` in `to`, never through a link. Hard links become
/// separate files, holes stay holes. `path`: for errors. An error for devices, for what cannot be read, and for trees
/// that are deeper than 200 directories; a part of the copy may be left.
Result<void> copyForKeeping(int from, const std::string& name, int to, const std::string& as, const std::string& path);

}  // namespace caisson::session
