// Confines the broker after its set-up.
#pragma once

#include "base/error.h"
#include "broker/settings.h"

namespace caisson::broker {

/// Changes to the user Settings::become, if set. Denies files, sockets other than received ones, and other processes;
/// allows some thirty system calls. Cannot be undone.
Result<void> confine(const Settings& settings);

}  // namespace caisson::broker
