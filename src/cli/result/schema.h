// The JSON Schema of a run's result (json.h), for programs that read results.
#pragma once

#include <string_view>

namespace caisson::cli {

/// Describes version kResultVersion. Objects may get further fields, so none of them excludes unknown ones.
std::string_view resultSchema();

}  // namespace caisson::cli
