// A run's result as one JSON object (SPEC 13). Field names and order are fixed: programs rely on them.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"
#include "cli/json_writer.h"

namespace caisson::cli {

/// One line without its line end. `exit_code`, `signal` and `limit` are null unless they are how it ended;
/// output that is not UTF-8 is base64, and `stdout_encoding`, `stderr_encoding` say which it is.
/// `error` is there only when the sandbox could not be built or was refused.
std::string renderResult(const RunResult& result);

/// The key "violations" of an object: calls that were refused.
void writeViolations(JsonWriter& json, const std::vector<Violation>& violations);

/// The result of a run that never came to be.
RunResult refusedResult(const Error& error);

}  // namespace caisson::cli
