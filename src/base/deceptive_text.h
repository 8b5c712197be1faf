// Characters that make text display as something else. Every output format (terminal, JSON, MCP) uses this table.
//
// Does not detect look-alike letters of other scripts; look_alikes.h does, for names.
#pragma once

#include <string_view>

namespace caisson {

/// Whether this character, when displayed, could control a terminal, hide or reorder text, or pass for a
/// blank.
bool isDeceptive(char32_t code);

/// Whether the text is valid UTF-8 without deceptive characters; line ends and tabs count as deceptive.
bool isReadable(std::string_view text);

}  // namespace caisson
