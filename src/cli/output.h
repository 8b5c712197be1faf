// Messages of the command line: to standard output or standard error, with or without colour.
#pragma once

#include <string_view>

#include "base/error.h"

namespace caisson::cli {

/// Exit status when caisson could not execute the request, or refused to.
inline constexpr int kRefused = 125;

/// Writes all of `text`, retrying short writes and EINTR. Returns 0 or an errno.
int writeAll(int descriptor, std::string_view text);

/// Prints to standard output and returns the exit status. EPIPE (`| head`) is not a failure.
int print(std::string_view text);

/// Prints one line to standard error, after `caisson: `. The text is made safe to display.
void printNotice(std::string_view text);

/// Prints an error with its remedy to standard error. Returns kRefused.
int printError(const Error& error);

/// The text that `printError` prints, without the prefix. Every part is made safe to display.
std::string describe(const Error& error);

/// Whether to colour output to `descriptor`: it is a terminal, and NO_COLOR is unset or empty.
bool wantsColour(int descriptor);

}  // namespace caisson::cli
