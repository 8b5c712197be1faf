// Resets a terminal that a payload wrote to, so that a prompt is readable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson {

/// Returns the sequence that undoes what a payload may have left: a partial escape sequence, another character set,
/// hidden text, colours, margins, the alternate screen, a frozen display, mouse reports that would be read as keys.
/// Afterwards the cursor is at the start of an empty line at the bottom. `term` is the value of TERM; null, "" or
/// "dumb" gets a new line only.
std::string terminalReset(const char* term);

/// terminalReset(), then moves everything that is on a screen of `rows` lines out of sight. Nothing that a payload
/// wrote can stand beside what is printed next, or look like a part of it.
std::string freshScreen(const char* term, unsigned rows);

/// Splits lines of text into parts that fit a screen of `rows` lines and `columns` columns each; at least one part.
std::vector<std::string> screenPages(std::string_view text, unsigned rows, unsigned columns);

}  // namespace caisson
