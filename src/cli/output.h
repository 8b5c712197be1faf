// Messages of the command line: to standard output or standard error, with or without colour.
#pragma once

#include <string_view>

#include "base/error.h"

namespace caisson::cli {

/// Exit status when caisson could not execute the request, or refused to.
inline constexpr int kRefused = 125;

/// Writes all of `text`, retrying short writes and EINTR. Returns 0 or an errno.
int writeAll(int descriptor, std::string_view text);

/// Prints lines to standard output and returns the exit status. EPIPE (`| head`) is not a failure. The text is made
/// safe to display (safeLines()); parts that must not make another line are to be passed through safeLine() before.
int print(std::string_view text);

/// Prints bytes as they are: a patch for a program, or text with colours whose parts are safe to display.
/// scripts/printer_allowlist.txt lists the callers.
int printBytes(std::string_view bytes);

/// Writes what a sandbox wrote, to standard output or standard error: a terminal, which would interpret it, gets it as
/// safeLines(), a file or a program as it is. Returns 0 or an errno.
int writeContent(int descriptor, std::string_view bytes);

/// Prints one line to standard error, after `caisson: `. The text is made safe to display.
void printNotice(std::string_view text);

/// Prints an error with its remedy to standard error. Returns kRefused.
int printError(const Error& error);

/// The text that `printError` prints, without the prefix. Every part is made safe to display.
std::string describe(const Error& error);

/// Whether to colour output to `descriptor`: it is a terminal, and NO_COLOR is unset or empty.
bool wantsColour(int descriptor);

}  // namespace caisson::cli
