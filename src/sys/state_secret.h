// Secrets of the user that caisson's processes share: random, stored in caisson's state, readable by their owner only.
// No sandbox is shown the state.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::sys {

/// The secret `name` of a directory of the state, 64 hexadecimal digits; created at the first use. Processes that start
/// at the same time get the same one.
Result<std::string> stateSecret(const std::string& directory, std::string_view name);

}  // namespace caisson::sys
