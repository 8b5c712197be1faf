// The bearer token of HTTP clients: created once, stored in caisson's state, readable by its owner only.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::mcp {

/// Returns the token of this user; creates it if missing. Logs its path, never the token.
Result<std::string> bearerToken();

}  // namespace caisson::mcp
