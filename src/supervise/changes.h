// What a run leaves to say: discarded changes, and failures put into words.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Counts what the payload changed in the workspace overlay and adds the notice that it is gone.
/// `upper` is a directory that the payload wrote: walked by descriptor, no link followed, bounded in time and depth.
void noteDiscardedChanges(int upper, const plan::Plan& plan, RunResult& result);

/// Adds the reason and the remedy that a bare errno does not tell.
void explainFailure(Error& error, const plan::Plan& plan);

}  // namespace caisson::supervise
