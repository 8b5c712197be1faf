// What follows when a payload tries to get out: the attempt on record, the alert, the trace that is kept (SPEC S4).
#pragma once

#include <string>

#include "audit/log.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/alert.h"

namespace caisson::supervise {

/// Puts a refused call on record. Without a log nothing happens.
void recordViolation(audit::Log* log, const std::string& sandbox_id, const Violation& violation);

/// The last bytes of the payload's streams.
struct LastOutput {
  std::string out, err;
};

/// For a result with `escape` set: says what became of the payload's changes, keeps policy, plan, events and last
/// output below CAISSON_HOME/traces, puts the tool or command into quarantine, and raises the alert. What can't be done
/// is a notice: the sandbox has ended either way. `kept`: what became of the changes where the sandbox does not decide.
void respondToEscape(const plan::Plan& plan, const Request& request, const LastOutput& last, audit::Log* log,
                     RunResult& result, const std::string& kept = {}, const AlertSender& send = sendAlert);

}  // namespace caisson::supervise
