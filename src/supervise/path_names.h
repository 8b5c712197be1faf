// Names of files: the parts of an absolute path, and the name of an open descriptor.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace caisson::supervise {

inline std::string parentOf(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}
inline std::string nameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The canonical name of what a descriptor refers to; "" if it has none.
inline std::string canonicalName(int fd) {
  char link[40];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  char path[4096];
  const ssize_t length = ::readlink(link, path, sizeof(path));
  return length > 0 && path[0] == '/' ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace caisson::supervise
