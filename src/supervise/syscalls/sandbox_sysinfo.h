// What sysinfo(2) answers inside a sandbox: the same figures as its /proc/meminfo and /proc/loadavg.
#pragma once

#include <sys/sysinfo.h>
#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "plan/plan.h"

namespace caisson::supervise {

/// For a call of `pid`.
struct sysinfo sandboxSysinfo(const plan::Plan& plan, pid_t pid);

/// Seconds by which a time namespace moves CLOCK_BOOTTIME, from the text of /proc/PID/timens_offsets; 0 if missing.
std::int64_t parseBootOffset(std::string_view text);

}  // namespace caisson::supervise
