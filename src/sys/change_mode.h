// Changes the mode of an object that is open with O_PATH.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

namespace caisson::sys {

/// Returns an errno, 0 after success. By its name in /proc: before Linux 6.6 no call does it by descriptor. The name
/// leads to the open object, whatever happened to its path.
inline int changeMode(int object, mode_t mode) {
  char name[40];
  std::snprintf(name, sizeof(name), "/proc/self/fd/%d", object);
  return ::chmod(name, mode) == 0 ? 0 : errno;
}

}  // namespace caisson::sys
