// Paths as text. A path is bytes, and a payload chooses them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson {

/// Whether each name on the path is readable (deceptive_text.h) and none looks like another one (look_alikes.h).
bool isPlainName(std::string_view path);

/// The path unchanged if it is plain (isPlainName()), no blanks in it could look like the end of a line, and
/// nothing in it could look like a mark of a list (hasListMarks()), else in the notation `$'a\377\nb'` of bash, zsh and
/// POSIX shells since 2024. Different paths never give the same text, and the notation can be pasted into a command
/// line.
std::string displayedPath(std::string_view path);

/// Whether a text begins or ends with a blank or has several in a row: they would fill a terminal's line, so that the
/// rest looks like another line.
bool hasOddBlanks(std::string_view text);

/// Whether a text has what lists put beside a name, such as ` (mode 0644 -> 0755)`, ` | 3 +++` or the comma between two
/// names: it could look like more than one name.
bool hasListMarks(std::string_view text);

/// A path that a client sent as text in the encoding "base64", else as it is. Nothing if the base64 is invalid or has
/// a NUL.
std::optional<std::string> decodePath(std::string text, std::string_view encoding);

}  // namespace caisson
