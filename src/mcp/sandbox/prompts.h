// Prompts for common tasks.
#pragma once

#include "mcp/server/features.h"

namespace caisson::mcp {

Json listPrompts();
Outcome getPrompt(const Call& call);

}  // namespace caisson::mcp
