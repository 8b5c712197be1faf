// A private copy of an agent's configuration in the home of its session: settings, without credentials.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caisson/session.h"
#include "cli/agent/providers.h"

namespace caisson::cli {

/// Whether the text of a settings file may hold a key, a password or a token. Errs on the side of yes.
bool mayHoldSecret(std::string_view path, std::string_view text);

/// Copies what `agent` lists from the caller's home to the home of the session. Returns what was left out, each with
/// the reason. Files that may hold a secret, links, and files beyond the limits are left out.
Result<std::vector<std::string>> copyConfiguration(Session& session, const KnownAgent& agent,
                                                   const std::vector<const Provider*>& apis);

}  // namespace caisson::cli
