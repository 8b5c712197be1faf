// Prompts for common tasks.
#pragma once

#include "mcp/sandbox/operator_bounds.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

/// Without prompts that name a tool which the operator does not offer.
Json listPrompts(const OperatorBounds& bounds);
/// An error if the prompt is unknown or not offered, or its required argument is missing.
Outcome getPrompt(const OperatorBounds& bounds, const Call& call);

}  // namespace caisson::mcp
