// Drops all rights that one of our processes does not need, before it reads any byte from the sandbox.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/error.h"
#include "egress/settings.h"
#include "plan/syscall_filter.h"

namespace caisson::egress {

struct Confinement {
  std::optional<uid_t> become;      ///< run as this user and group; set only if the caller is root
  int landlock_abi = 0;             ///< 0: without Landlock
  std::uint64_t descriptors = 256;  ///< new soft limit on open descriptors, bounded by the hard one
  plan::SyscallFilter filter;
};

/// Denies files, privileges, core dumps and ptrace by others, and allows only the system calls of the filter. Cannot be
/// undone; after an error some of it may be in force.
Result<void> confineSelf(const Confinement& wanted);

/// The system calls of the egress process. `brokered`: with those for a credential broker. `self`: the process, which
/// may signal itself only.
plan::SyscallFilter egressFilter(bool brokered, std::uint32_t self, Architecture architecture = kNative);

/// Confines the egress process: confineSelf() with its own filter and limits.
Result<void> confine(const Settings& settings);

}  // namespace caisson::egress
