// Reads small files of the kernel and of /etc.
#pragma once

#include <string>

namespace caisson::sys {

/// The whole file without trailing newlines and NUL bytes, "" if it cannot be read. For files with a fixed path.
std::string readKernelFile(const char* path);

}  // namespace caisson::sys
