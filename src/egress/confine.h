// Takes everything from a process of ours that it does not need, before it reads a byte of the sandbox's.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/error.h"
#include "egress/settings.h"
#include "plan/syscall_filter.h"

namespace caisson::egress {

struct Confinement {
  std::optional<uid_t> become;  ///< a root caller's helper runs as this user and group
  int landlock_abi = 0;
  std::uint64_t descriptors = 256;
  plan::SyscallFilter filter;
};

/// No files, no privileges, no core, no look from outside, and the system calls of the filter only.
Result<void> confineSelf(const Confinement& wish);

/// The egress process.
Result<void> confine(const Settings& settings);

}  // namespace caisson::egress
