// The review at the end of an agent's run: shows what changed and, on a terminal, asks whether to commit it.
#pragma once

#include "caisson/session.h"

namespace caisson::cli {

/// Destroys the session if nothing changed or everything was committed; otherwise keeps it and prints the commands for
/// it. Commits exactly what was shown. `may_ask`: the user may be asked on the terminal.
Result<void> reviewChanges(Session& session, bool may_ask);

}  // namespace caisson::cli
