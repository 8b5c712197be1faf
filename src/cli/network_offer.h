// Before a network client runs in a sandbox without network: a prompt at a terminal, a notice elsewhere.
// Advice only: what is not detected has no network either.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"
#include "caisson/session.h"
#include "cli/options.h"

namespace caisson::cli {

/// If the command is a network client and the policy has no network: prompts at a terminal and changes the request's
/// policy to `proxy` if the user agrees; elsewhere, and for a declared tool, prints a notice. Nothing with `--net`,
/// `--json`, `--quiet`, level none or tier landlock.
Result<void> offerNetwork(const Arguments& arguments, Request& request);

/// The same before a command of a session that has no network: the hosts that the user allows stay allowed in it, and
/// its sandbox is restarted. Returns the notice that it printed, or "". `may_ask` false, or hosts not known: only the
/// notice.
Result<std::string> offerSessionNetwork(Session& session, const std::vector<std::string>& command, bool may_ask);

/// The notice about the missing network that the user saw already: offerNetwork() printed it, or the user declined its
/// prompt. Else empty. Pass the request after offerNetwork().
std::string networkNoticeAlreadyShown(const Arguments& arguments, const Request& request);

}  // namespace caisson::cli
