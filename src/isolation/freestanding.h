// For programs without a C library: pid 1 of a session and of an OCI container. The entry point calls `initMain` with
// the initial stack: argc, then argv.
#pragma once

#include <cstdint>

#include "sys/kernel_abi.h"

extern "C" {
/// clone(2) for a child that starts at `entry` on a separate stack. A negative errno on failure.
long cloneOnStack(unsigned long flags, void* stack_top, std::int32_t* child_tid, void (*entry)());
/// The same by clone3(2); the arguments name the stack.
long clone3OnStack(const caisson::sys::CloneArgs* arguments, unsigned long size, void (*entry)());
}
