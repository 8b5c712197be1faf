// From what was seen of a run's end to what the result says about it.
#pragma once

#include <optional>

#include "base/error.h"
#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

class LimitWatch;

/// What a supervisor saw and did.
struct Ending {
  std::optional<Error> failure;    ///< of the set-up, or of a part the run depends on
  std::optional<int> wait_status;  ///< the payload's
  Limit reached = Limit::none;     ///< that the run was ended for
  bool killed = false;             ///< by us
  bool timed_out = false;
  bool cancelled = false;
};

/// Fills in outcome, limit, exit code, signal and error; usage and escape are there already.
void classify(Ending ending, const plan::Plan& plan, const LimitWatch& limits, RunResult& result);

/// For a payload that a signal ended which nobody of us sent: the limits that the kernel holds in this way.
void classifySignal(const plan::Plan& plan, RunResult& result);

/// For a sandbox that was ended after an attempt to get out of it, which is in the result already.
void endedForEscape(std::string_view call, const std::string& program, RunResult& result);

void setupFailed(Error error, const plan::Plan& plan, RunResult& result);

}  // namespace caisson::supervise
