// Inspects program files of the host, before any payload code runs.
#pragma once

#include <string>
#include <string_view>

namespace caisson::sys {

/// The real path of a program, links resolved: `name` itself if it contains a slash, else the first executable of that
/// name in `path` (colon-separated directories). Empty if there is none.
std::string locateProgram(std::string_view name, std::string_view path);

/// Whether both paths are the same file, or have the same content. False if either cannot be read.
bool sameProgram(const std::string& one, const std::string& other);

/// The interpreter in a script's first line; for `env`, the program that it would run. Empty if the file is not a
/// script.
std::string scriptInterpreter(const std::string& file);

/// "busybox" or "toybox" if the open file is one of them, regardless of its name; else empty. Detected by text that
/// every build contains. Skips files larger than any build.
std::string_view multiCallProgram(int fd);

}  // namespace caisson::sys
