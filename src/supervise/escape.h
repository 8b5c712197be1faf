// The response to an escape attempt: audit record, alert, and a trace on disk.
#pragma once

#include <string>

#include "audit/log.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/alert.h"

namespace caisson::supervise {

/// Records a blocked call. Does nothing without a log.
void recordViolation(audit::Log* log, const std::string& sandbox_id, const Violation& violation);

/// The last bytes of the payload's streams.
struct LastOutput {
  std::string out, err;
};

/// For a result with `escape` set: sets the content of the plan's caches aside, keeps policy, plan, events and last
/// output below CAISSON_HOME/traces, puts the tool or command into quarantine if Request::quarantine is set, records
/// the attempt and raises the alert. A failure of these is a notice. `kept`: what happened to the payload's changes; if
/// empty, the plan determines it.
void respondToEscape(const plan::Plan& plan, const Request& request, const LastOutput& last, audit::Log* log,
                     RunResult& result, const std::string& kept = {}, const AlertSender& send = sendAlert);

}  // namespace caisson::supervise
