// Reads text files of the host's /proc.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace caisson::supervise {

/// Reads at most a mebibyte; empty if it cannot be read.
std::string readFile(const char* path);
/// Reads /proc/PID/`name`.
std::string readFile(pid_t pid, const char* name);
/// The name of a process's program, as the process set it.
std::string programName(pid_t pid);
/// The numeric entry names of a directory below /proc/PID, at most `most`.
std::vector<int> numbersIn(pid_t pid, const char* name, std::size_t most);

}  // namespace caisson::supervise
