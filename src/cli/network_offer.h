// Before a network client runs in a sandbox without network: a prompt at a terminal, a notice elsewhere.
// Advice only: what is not detected has no network either.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"
#include "caisson/session.h"
#include "cli/options.h"

namespace caisson::cli {

/// Changes the request's policy to `proxy` if the user at the terminal says so. Never waits without a terminal.
Result<void> offerNetwork(const Arguments& arguments, Request& request);

/// The same before a command of a session that has no network: the hosts that the user allows stay allowed in it.
/// Returns the notice that it printed, or "".
Result<std::string> offerSessionNetwork(Session& session, const std::vector<std::string>& command, bool may_ask);

/// The notice that offerNetwork() printed or asked about, which need not be printed again; else empty.
std::string offeredBefore(const Arguments& arguments, const Request& request);

}  // namespace caisson::cli
