// Resets a terminal that a payload wrote to, so that a prompt is readable.
#pragma once

#include <string_view>

namespace caisson {

/// Returns the sequence that undoes what a payload may have left: a partial escape sequence, another character set,
/// hidden text, colours, margins, the alternate screen, mouse reports that would be read as keys. Afterwards the cursor
/// is at the start of an empty line at the bottom. `term` is the value of TERM; null, "" or "dumb" gets a new line
/// only.
std::string_view terminalReset(const char* term);

}  // namespace caisson
