// A terminal to write to without waiting.
#pragma once

#include <fcntl.h>

#include <string>

#include "sys/fd.h"

namespace caisson::sys {

/// Opens the terminal behind a descriptor again, non-blocking: the flags of the caller's open file stay as they are.
/// Invalid if it may not be opened, such as the terminal of another user after su.
inline Fd reopenTerminal(int descriptor) {
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return Fd(::open(link.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace caisson::sys
