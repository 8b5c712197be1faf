// The canonical path of an open descriptor, for opening the same file again without following links.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.h"

namespace caisson::sys {

/// The kernel's name of the file, without links. A removed file gets the kernel's " (deleted)" at its end; a pipe or
/// socket, which has no path, is an error.
inline Result<std::string> canonicalPath(int descriptor) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  char path[4096];
  const ssize_t length = ::readlink(link.c_str(), path, sizeof(path));
  if (length <= 0 || path[0] != '/') return fail(sysError(Stage::state, "readlink", link, length < 0 ? errno : ENOENT));
  return std::string(path, static_cast<std::size_t>(length));
}

}  // namespace caisson::sys
