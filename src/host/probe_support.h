// Shared by the probes: runs one attempt in a child and passes the result through a pipe.
#pragma once

#include <cstddef>
#include <type_traits>

namespace caisson::host {

/// `body` fills the `size` bytes at `result`, at most 1024, in the child. If the child could not be made, died or took
/// longer than five seconds (it is killed then), the caller's bytes are unchanged. The body may only make system calls:
/// in a threaded caller, another thread's locks stay held forever in the child.
void runInChild(void (*body)(void* result), void* result, std::size_t size);

/// The same with a typed result; T{} if it could not be tried.
template <class T>
T inChild(void (*body)(void* result)) {
  static_assert(std::is_trivially_copyable_v<T>);
  T result{};
  runInChild(body, &result, sizeof result);
  return result;
}

}  // namespace caisson::host
