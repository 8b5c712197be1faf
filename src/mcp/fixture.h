// The tools, prompts and resources that the official conformance suite looks for (`caisson mcp --conformance`). They
// touch nothing of the machine; they are here so that the suite judges the very protocol code that serves sandboxes.
#pragma once

#include <memory>

#include "mcp/features.h"

namespace caisson::mcp {

std::unique_ptr<Features> makeFixture();

}  // namespace caisson::mcp
