// The build id of the running program or of the shared library that contains this code.
#pragma once

#include <string_view>

namespace caisson::sys {

/// The linker's hash of that file (NT_GNU_BUILD_ID), as bytes; empty if it was linked without one.
std::string_view buildId();

}  // namespace caisson::sys
