// Seals of files that the host acts on later: a MAC with a key that lies in caisson's state, outside the directories of
// sessions. A program that can write such a file, but not read the key, cannot make the host carry out another one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// `heading`, a line with the kind and format of the file, the MAC of heading and body, a line end, and the body.
Result<std::string> sealed(std::string_view heading, std::string_view body);

/// The body of a text that begins with `heading`; nothing if its MAC is not valid.
Result<std::optional<std::string>> unsealed(std::string_view heading, const std::string& text);

/// Renames the file to NAME.invalid, and returns the error that reports it.
Error keepAside(const sys::RootDir& directory, const char* name, std::string_view call, std::string_view hint);

}  // namespace caisson::session
