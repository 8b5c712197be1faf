// Brings a terminal that a payload wrote to back to a state in which a question can be read.
#pragma once

#include <string_view>

namespace caisson {

/// Ends what may be open or changed: an escape sequence half sent, another character set, hidden text, colours,
/// margins, the alternate screen, reports of the mouse that would be taken for keys. The cursor is at the start of an
/// empty line at the bottom. For a terminal of type `term`, as the variable TERM names it; null or "dumb" gets a new
/// line only.
std::string_view terminalReset(const char* term);

}  // namespace caisson
