// Shared by the probes: runs one attempt in a child, passes the result through a pipe; reads files of /proc and /sys.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <type_traits>

#include "sys/probe.h"

namespace caisson::sys {

/// `body` fills the `size` bytes at `result` in the child. If the child could not be made, died or took longer than
/// five seconds, the caller's bytes are unchanged. The body may only make system calls: in a threaded caller, another
/// thread's locks stay held forever in the child.
void runInChild(void (*body)(void* result), void* result, std::size_t size);

template <class T>
T inChild(void (*body)(void* result)) {
  static_assert(std::is_trivially_copyable_v<T>);
  T result{};
  runInChild(body, &result, sizeof result);
  return result;
}

/// The outcome of a system call that returned `result`.
inline Attempt attempt(long result) { return {result >= 0 ? 0 : errno}; }

/// The whole file without trailing newlines, "" if it cannot be read. For kernel files with a fixed path.
std::string readKernelFile(const char* path);

}  // namespace caisson::sys
