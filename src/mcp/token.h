// The secret that HTTP clients show: made once, kept in caisson's own state, readable by its owner only.
#pragma once

#include <string>

#include "base/error.h"

namespace caisson::mcp {

/// The token of this user; made if there is none. Where it is kept goes to the log, the token itself never.
Result<std::string> bearerToken();

}  // namespace caisson::mcp
