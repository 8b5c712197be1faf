// A critical event told at once to whom the owner named: a program, a webhook (SPEC U3).
#pragma once

#include "audit/log.h"
#include "caisson/run.h"

namespace caisson::supervise {

/// Starts the programs and calls the webhooks of the owner's configuration (approval/owner.h) with the event as one
/// JSON object, and waits for each ten seconds at most. What did not work is on record as `alert_failed` and a warning
/// in the result. Without a configured alert nothing happens.
void raiseAlert(const audit::Event& event, audit::Log* log, RunResult& result);

}  // namespace caisson::supervise
