// Notices at the end of a run: discarded changes, and explanations of failures.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Counts the payload's changes in the workspace overlay and adds the notice that they were discarded. `upper` is a
/// directory that the payload wrote: walked by descriptor, no link followed, bounded in time and depth.
void noteDiscardedChanges(int upper, const plan::Plan& plan, RunResult& result);

/// Adds reason and remedy to a bare errno.
void explainFailure(Error& error, const plan::Plan& plan);

}  // namespace caisson::supervise
