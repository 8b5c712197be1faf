// A critical event told at once to whom the owner named: a program, a webhook (SPEC U3).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "audit/log.h"
#include "caisson/run.h"

namespace caisson::supervise {

/// Starts the programs and calls the webhooks of the owner's configuration (approval/owner.h) with a text, and waits
/// for each ten seconds at most. Returns what did not work. Without a configured alert nothing happens.
std::vector<std::string> sendAlert(const std::string& text);

/// For callers that may not start programs.
using AlertSender = std::function<std::vector<std::string>(const std::string& text)>;

/// Sends the event as one JSON object. What did not work is on record as `alert_failed` and a warning in the result.
void raiseAlert(const audit::Event& event, audit::Log* log, RunResult& result, const AlertSender& send = sendAlert);

}  // namespace caisson::supervise
