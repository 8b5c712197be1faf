// A private copy of an agent's configuration in the home of its session: settings, without credentials.
#pragma once

#include <string>
#include <vector>

#include "caisson/session.h"
#include "cli/agent/providers.h"

namespace caisson::cli {

/// Copies what `agent` lists from the caller's home to the home of the session. Returns what was left out, each with
/// the reason. Settings other than those of the allowlist, secrets (settings.h), files of text that may hold one,
/// links, and files beyond the limits are left out.
Result<std::vector<std::string>> copyConfiguration(Session& session, const KnownAgent& agent,
                                                   const std::vector<const Provider*>& apis);

}  // namespace caisson::cli
