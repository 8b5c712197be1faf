// The C library's clone, for a child on a stack of its own that shares memory or descriptors with its parent.
#pragma once

#include <sched.h>

/// Under the name that no sanitizer puts itself before. What theirs hands to the new thread lies in a frame that is
/// gone when the thread does not start at once; it counts every call as the fork of a program with threads; and it
/// takes locks which, in a copy of such a program, a thread may hold that is not there.
extern "C" int __clone(int (*entry)(void*), void* stack, int flags, void* argument, ...);  // NOLINT

namespace caisson::sys {

template <class... Further>
int clone(int (*entry)(void*), void* stack, int flags, void* argument, Further... further) {
  return ::__clone(entry, stack, flags, argument, further...);
}

}  // namespace caisson::sys
