// The C library's clone, for a child with a separate stack that shares memory or descriptors with its parent.
#pragma once

#include <sched.h>

/// `__clone` is the alias that sanitizers do not intercept. Their wrapper passes arguments in a stack frame that may be
/// gone before the thread starts, treats every call as a fork of a threaded program, and takes locks that another
/// thread may hold.
extern "C" int __clone(int (*entry)(void*), void* stack, int flags, void* argument, ...);  // NOLINT

namespace caisson::sys {

template <class... Further>
int clone(int (*entry)(void*), void* stack, int flags, void* argument, Further... further) {
  return ::__clone(entry, stack, flags, argument, further...);
}

}  // namespace caisson::sys
