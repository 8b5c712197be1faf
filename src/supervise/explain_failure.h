// Turns a launch error into one with a reason and a remedy.
#pragma once

#include "base/error.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Adds reason and remedy to a bare errno; leaves an error that has a hint as it is.
void explainFailure(Error& error, const plan::Plan& plan);

}  // namespace caisson::supervise
