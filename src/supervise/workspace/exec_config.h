// After a run in a `rw` workspace: files that the host would execute (hooks, editor tasks) and that the run created are
// moved to a quarantine directory. The kernel cannot forbid names that do not exist yet.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Moves such files out of the workspace of a plan with `guarded` set; else does nothing. Nothing of the run may be
/// alive any more. What was moved, or could not be, is in the result.
void quarantineNewFiles(const plan::Plan& plan, RunResult& result);

}  // namespace caisson::supervise
