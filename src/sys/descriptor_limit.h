// The descriptor limit of caisson's own processes.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "sys/raw_syscall.h"

namespace caisson::sys {

/// Raises the soft descriptor limit to the hard one. Call it in our processes before they send descriptors: the kernel
/// counts descriptors in flight per user and compares with the sender's soft limit, so a payload of the same user with
/// 1250 in flight could block us. Raw calls only: safe between clone and exec.
[[gnu::always_inline]] inline void raiseDescriptorLimit() {
  struct {
    std::uint64_t soft, hard;
  } limit;
  if (raw(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) < 0 || limit.soft == limit.hard) return;
  limit.soft = limit.hard;
  raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
}

}  // namespace caisson::sys
