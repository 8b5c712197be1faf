// The limit on descriptors of caisson's own processes.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "sys/raw_syscall.h"

namespace caisson::sys {

/// Raises the soft limit on descriptors to the hard one. For a process of ours before it sends descriptors: the kernel
/// counts descriptors in flight per user and holds the count against the sender's soft limit, so a payload of the same
/// user that keeps 1250 in flight would keep us from sending any. Raw calls only: works between clone and exec.
[[gnu::always_inline]] inline void raiseDescriptorLimit() {
  struct {
    std::uint64_t soft, hard;
  } limit;
  if (raw(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) < 0 || limit.soft == limit.hard) return;
  limit.soft = limit.hard;
  raw(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
}

}  // namespace caisson::sys
