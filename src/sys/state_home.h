// Where caisson keeps its own state.
#pragma once

#include <string>

namespace caisson::sys {

/// CAISSON_HOME, or `caisson` in the user's XDG data directory. Empty when none of CAISSON_HOME, XDG_DATA_HOME and HOME
/// holds an absolute path.
std::string stateHome();

}  // namespace caisson::sys
