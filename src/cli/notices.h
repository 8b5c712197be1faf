// What a person should read after a run: which limit ended it, what was discarded, cut or denied.
// A plain success with nothing to say gives no lines.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"

namespace caisson::cli {

/// `watched`: a person reads along (standard error is a terminal), so weakened protections are worth a line each;
/// programs find them in the JSON result.
std::vector<std::string> noticesFor(const RunResult& result, bool watched);

}  // namespace caisson::cli
