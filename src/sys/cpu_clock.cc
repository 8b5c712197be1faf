#include "sys/cpu_clock.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace caisson::sys {

Result<CpuClock> CpuClock::open(pid_t pid) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.inherit = 1;
  // perf_event_paranoid 2, the default, requires these two. The task clock includes kernel time regardless.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  Fd event(static_cast<int>(::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) {
    return fail(sysError(Stage::limits, "perf_event_open", "cpu clock", errno,
                         "sysctl kernel.perf_event_paranoid must be at most 2"));
  }
  return CpuClock(std::move(event));
}

std::chrono::microseconds CpuClock::used() const {
  std::uint64_t nanoseconds = 0;
  if (::read(event_.get(), &nanoseconds, sizeof(nanoseconds)) != static_cast<ssize_t>(sizeof(nanoseconds))) return {};
  return std::chrono::microseconds(nanoseconds / 1000);
}

}  // namespace caisson::sys
