// What executable lists mean on this host: where the named programs are, what they need to start, and every other name
// that leads to the same file.
//
// Observes only; plan/executables.h decides. Costs a few file reads per listed program, and nothing without lists.
#pragma once

#include "plan/plan.h"
#include "policy/model.h"

namespace caisson::supervise {

plan::ExecutableFacts observeExecutables(const policy::Policy& policy);

}  // namespace caisson::supervise
