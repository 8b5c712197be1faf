// Program files of the host, looked at before anything of a payload runs.
#pragma once

#include <string>
#include <string_view>

namespace caisson::sys {

/// Where a program lies, links resolved: `name` itself if it holds a slash, else the first executable file of that name
/// in `path` (directories, parted by colons). Empty if there is none.
std::string locateProgram(std::string_view name, std::string_view path);

/// Whether both are one file, by whatever links, or hold the same bytes. False if either can't be read.
bool sameProgram(const std::string& one, const std::string& other);

/// The interpreter that a script's first line names, with the program that `env` in it would look for; empty if the
/// file is no script.
std::string scriptInterpreter(const std::string& file);

/// "busybox" or "toybox" if the open file is that, under whatever name and by whatever link or copy; else empty. Known
/// by the words that every build of them carries. Larger files than either of them ever is are not looked through.
std::string_view multiCallProgram(int fd);

}  // namespace caisson::sys
