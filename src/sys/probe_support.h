// What the probes share: one attempt in a child, its plain result back through a pipe; small files of /proc and /sys.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <type_traits>

#include "sys/probe.h"

namespace caisson::sys {

/// `body` fills the `size` bytes at `result` in the child. When the child could not be made, died or took longer than
/// five seconds, the caller's bytes are unchanged. The body may only make system calls: the caller may be threaded,
/// and a lock held by another thread at the fork is held for ever in the child.
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

/// The whole file without trailing newlines, "" when it can't be read. For files of the kernel's own, by fixed path.
std::string readKernelFile(const char* path);

}  // namespace caisson::sys
