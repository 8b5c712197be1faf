// Before a network client runs in a sandbox without network: a prompt at a terminal, a notice elsewhere (SPEC N9).
// Advice only: what is not detected has no network either.
#pragma once

#include <string>

#include "caisson/run.h"
#include "cli/options.h"

namespace caisson::cli {

/// Changes the request's policy to `proxy` if the user at the terminal says so. Never waits without a terminal.
Result<void> offerNetwork(const Arguments& arguments, Request& request);

/// The notice that offerNetwork() printed or asked about, which need not be printed again; else empty.
std::string offeredBefore(const Arguments& arguments, const Request& request);

}  // namespace caisson::cli
