// Sends an alert about a critical event to the program or webhook that the owner configured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "audit/log.h"
#include "caisson/run.h"

namespace caisson::supervise {

/// Runs the programs and calls the webhooks of the owner's configuration (approval/owner.h) with a text, and waits at
/// most ten seconds for each. Returns the failures. Does nothing without a configured alert.
std::vector<std::string> sendAlert(const std::string& text);

/// A replacement for sendAlert(), for callers that may not start programs.
using AlertSender = std::function<std::vector<std::string>(const std::string& text)>;

/// Sends the event as one JSON object. Failures are recorded in `log` (may be null) as `alert_failed` and are notices
/// in the result.
void raiseAlert(const audit::Event& event, audit::Log* log, RunResult& result, const AlertSender& send = sendAlert);

}  // namespace caisson::supervise
