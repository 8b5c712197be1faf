// A run's result as one JSON object. Field names and order are fixed: programs rely on them.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "caisson/run.h"

namespace caisson {

/// Raised when a field changes or goes; new fields leave it as it is.
inline constexpr int kResultVersion = 1;

/// One line without its line end. `exit_code`, `signal` and `limit` are null unless the run ended that way; a program
/// that failed by itself at a limit has both `exit_code` and `limit`. Output that is not UTF-8 is base64;
/// `stdout_encoding` and `stderr_encoding` name the encoding. `error` is present only if the sandbox could not be
/// built, was refused, or was ended for an escape attempt.
std::string renderResult(const RunResult& result);

/// Writes the key "violations" of an object: blocked calls.
void writeViolations(JsonWriter& json, const std::vector<Violation>& violations);

/// The result of a run that was refused before it started.
RunResult refusedResult(const Error& error);

}  // namespace caisson
