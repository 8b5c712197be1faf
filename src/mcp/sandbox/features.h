// The features of `caisson mcp`: sandboxes.
#pragma once

#include <memory>

#include "mcp/sandbox/sandboxes.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

/// `version` is caisson's own.
std::unique_ptr<Features> makeSandboxFeatures(Sandboxes& sandboxes, std::string version);

}  // namespace caisson::mcp
