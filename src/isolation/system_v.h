// Memory of System V objects. They belong to the sandbox's IPC namespace and to no process, so they can only be counted
// from inside. Inlined, since pid 1 of a single run has unmapped everything but its own code.
#pragma once

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include <cstdint>

#include "sys/raw_syscall.h"

namespace caisson::isolation {

/// Bytes of shared memory, messages and semaphores in this IPC namespace, with an estimate per object.
[[gnu::always_inline]] inline std::int64_t systemVBytes() {
  constexpr std::int64_t kPerSemaphore = 64, kPerObject = 512, kPageBytes = 4096;
  shm_info shared;  // not initialised: the compiler could emit a call to memset, which is unmapped by now
  msginfo queues;
  seminfo semaphores;
  std::int64_t bytes = 0;
  if (sys::raw(SYS_shmctl, 0, SHM_INFO, &shared) >= 0) {
    bytes += static_cast<std::int64_t>(shared.shm_rss + shared.shm_swp) * kPageBytes;
  }
  if (sys::raw(SYS_msgctl, 0, MSG_INFO, &queues) >= 0) {
    bytes += queues.msgtql + static_cast<std::int64_t>(queues.msgpool + queues.msgmap) * kPerObject;
  }
  if (sys::raw(SYS_semctl, 0, 0, SEM_INFO, &semaphores) >= 0) {
    bytes += semaphores.semaem * kPerSemaphore + static_cast<std::int64_t>(semaphores.semusz) * kPerObject;
  }
  return bytes;
}

}  // namespace caisson::isolation
