// pid 1 of a container, as embedded in the library.
#pragma once

#include <string_view>

namespace caisson::runtime {

/// The content of its executable file.
std::string_view initProgram();

}  // namespace caisson::runtime
