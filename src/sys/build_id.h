// The build id of the running program.
#pragma once

#include <string_view>

namespace caisson::sys {

/// The linker's hash of the program (NT_GNU_BUILD_ID), as bytes; empty if the program was linked without one.
std::string_view buildId();

}  // namespace caisson::sys
