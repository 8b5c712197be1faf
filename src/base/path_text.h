// Paths as text. A path is bytes, and a payload chooses them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson {

/// The path unchanged if it is readable (deceptive_text.h), else in the notation `$'a\377\nb'` of bash, zsh and POSIX
/// shells since 2024. Different paths never give the same text, and the notation can be pasted into a command line.
std::string displayedPath(std::string_view path);

/// A path that a client sent as text in the encoding "base64", else as it is. Nothing if the base64 is invalid or has
/// a NUL.
std::optional<std::string> decodePath(std::string text, std::string_view encoding);

}  // namespace caisson
