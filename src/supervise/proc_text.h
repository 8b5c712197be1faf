// What the host's /proc says about a process, as text.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace caisson::supervise {

/// At most a mebibyte of it; empty when it cannot be read.
std::string readFile(const char* path);
/// Of /proc/PID/`name`.
std::string readFile(pid_t pid, const char* name);
/// The name of the program that a process executes, as it calls itself.
std::string programName(pid_t pid);
/// Every number that names an entry of a directory below /proc/PID.
std::vector<int> numbersIn(pid_t pid, const char* name, std::size_t most);

}  // namespace caisson::supervise
