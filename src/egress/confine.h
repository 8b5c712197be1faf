// Takes everything from the egress process that it does not need, before it reads a byte of the sandbox's.
#pragma once

#include "base/error.h"
#include "egress/settings.h"

namespace caisson::egress {

/// No files (Landlock with no rule, and no call that opens one), no other processes, no privileges, few system calls.
/// What is open stays open.
Result<void> confine(const Settings& settings);

}  // namespace caisson::egress
