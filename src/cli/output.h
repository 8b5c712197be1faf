// The command line's own words: to standard output, to standard error, with or without colour.
#pragma once

#include <string_view>

#include "base/error.h"

namespace caisson::cli {

/// Exit status when caisson could not or would not do what was asked (SPEC 13).
inline constexpr int kRefused = 125;

/// Writes all of it, over short writes and interruptions. 0, or the errno that stopped it.
int writeAll(int descriptor, std::string_view text);

/// Prints to standard output; the exit status to end with. A reader that went away (`| head`) is no failure.
int print(std::string_view text);

/// One line to standard error, after `caisson: `. The text is made safe to show.
void tell(std::string_view text);

/// An error to standard error, with what to do about it. Returns kRefused.
int complain(const Error& error);

/// How `complain` words it, without the prefix. Every part is made safe to show.
std::string describe(const Error& error);

/// Whether to colour what goes to `descriptor`: it is a terminal, and NO_COLOR is unset or empty.
bool wantsColour(int descriptor);

}  // namespace caisson::cli
