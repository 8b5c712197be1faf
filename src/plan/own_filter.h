// System call filters for caisson's own confined processes: the egress, the broker, a session's supervisor.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "plan/syscall_filter.h"
#include "plan/syscall_rules.h"

namespace caisson::plan {

/// Rules that allow these calls and, even if they are not listed, mmap and mprotect without PROT_EXEC.
rules::Rules allowCalls(std::initializer_list<std::span<const std::string_view>> lists,
                        Architecture architecture = kNative);

/// Allows signals to process `self` only, which abort() needs. Before Linux 6.12 no Landlock scope confines signals.
void allowAbort(rules::Rules& rules, std::uint32_t self);

/// The filter with these rules; every other call fails with EPERM, without notification.
SyscallFilter denyUnlisted(rules::Rules rules);

}  // namespace caisson::plan
