// Prompts for common tasks.
#pragma once

#include "mcp/server/features.h"

namespace caisson::mcp {

Json listPrompts();
/// An error if the prompt is unknown or its required argument is missing.
Outcome getPrompt(const Call& call);

}  // namespace caisson::mcp
