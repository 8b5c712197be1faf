// The result of trying something on this host.
#pragma once

#include <cerrno>

namespace caisson::sys {

/// Result of one attempt: 0 (success), an errno, or not tried because an earlier step failed.
struct Attempt {
  static constexpr int kNotTried = -1;
  int sys_errno = kNotTried;
  [[nodiscard]] bool ok() const { return sys_errno == 0; }
  [[nodiscard]] bool tried() const { return sys_errno != kNotTried; }
};

/// The outcome of a libc call that returned `result`; reads errno if that is negative.
inline Attempt attempt(long result) { return {result >= 0 ? 0 : errno}; }

}  // namespace caisson::sys
