// How long a thread has worked: waiting for a processor or a disk is not a cost, and no reason to give up early.
#pragma once

#include <chrono>
#include <ctime>

namespace caisson::sys {

/// The processor time of this thread so far.
inline std::chrono::nanoseconds threadTime() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace caisson::sys
