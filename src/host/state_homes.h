// Directories that runs of this user had as CAISSON_HOME: a sandbox of another one must not reach the sessions there.
//
// One link per directory, in the registry of written directories (written_trees.h). If nothing can be written
// there, as with a HOME that is read-only, nothing is recorded.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::host {

/// Records CAISSON_HOME, if it is not the default. Removes records of directories that are gone when it adds one.
Result<void> recordStateHome();

/// The recorded directories other than CAISSON_HOME, canonical, if they exist. An error if they cannot
/// be read: then nothing is known.
Result<std::vector<std::string>> otherStateHomes();

}  // namespace caisson::host
