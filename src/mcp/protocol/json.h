// JSON of the protocol.
#pragma once

#include "base/json_document.h"

namespace caisson::mcp {

using caisson::Json;

}  // namespace caisson::mcp
