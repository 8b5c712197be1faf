// Characters that make text read as something it is not. One table for every front door: terminal, JSON, MCP.
//
// Not detected: look-alike letters of other scripts.
#pragma once

#include <string_view>

namespace caisson {

/// Whether showing this character could steer a terminal or hide or reorder what is read.
bool isDeceptive(char32_t code);

/// Whether a text is UTF-8 without such characters, line ends and tabs included.
bool isReadable(std::string_view text);

}  // namespace caisson
