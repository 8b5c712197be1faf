// Which build of the program this is.
#pragma once

#include <string_view>

namespace caisson::sys {

/// What the linker computed from the program's whole content (NT_GNU_BUILD_ID), as bytes; empty when it was told not
/// to.
std::string_view buildId();

}  // namespace caisson::sys
