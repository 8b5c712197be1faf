// What is left to the broker once it is set up.
#pragma once

#include "base/error.h"
#include "broker/settings.h"

namespace caisson::broker {

/// No files, no sockets but those that are handed over, no other process, some thirty system calls.
Result<void> confine(const Settings& settings);

}  // namespace caisson::broker
