// Confines the broker after its set-up.
#pragma once

#include "base/error.h"
#include "broker/settings.h"
#include "plan/syscall_filter.h"

namespace caisson::broker {

/// The system calls of the broker. `self`: the process, which may signal itself only.
plan::SyscallFilter brokerFilter(std::uint32_t self, Architecture architecture = kNative);

/// Changes to the user Settings::become, if set. Denies files, sockets other than received ones, and other processes;
/// allows some thirty system calls. Cannot be undone.
Result<void> confine(const Settings& settings);

}  // namespace caisson::broker
