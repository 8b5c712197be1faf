// The tools, prompts and resources that the official conformance suite requires (`caisson mcp --conformance`). They do
// not access the machine; they are here so that the suite tests the same protocol code that serves sandboxes.
#pragma once

#include <memory>

#include "mcp/server/features.h"

namespace caisson::mcp {

std::unique_ptr<Features> makeFixture();

}  // namespace caisson::mcp
