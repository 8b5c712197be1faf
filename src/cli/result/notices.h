// Notices printed after a run: which limit ended it, what was discarded, cut or denied. Empty after an uneventful
// success.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"

namespace caisson::cli {

/// `watched`: standard error is a terminal, so each weakened protection gets a line; programs find them in the JSON
/// result. The landlock tier gets these lines always, unless they were printed when the session was created.
std::vector<std::string> noticesFor(const RunResult& result, bool watched, bool warned_before = false);

/// "denied: OPERATION: OBJECT, N times (RULE); REMEDY", without the parts that do not apply.
std::string describeDenial(const Denial& denial);

}  // namespace caisson::cli
