// The server's log: one JSON object per line on standard error. CAISSON_LOG sets the lowest level that is written
// (debug, info, warning, error, off); default `info`.
#pragma once

#include <string_view>

#include "mcp/protocol/json.h"

namespace caisson::mcp {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// Parses a level; nothing if unknown.
std::optional<LogLevel> logLevelOf(std::string_view name);

/// Writes one line: time, level, message, and the members of `fields`. Thread-safe.
void writeLog(LogLevel level, std::string_view message, const Json& fields = Json::object());

}  // namespace caisson::mcp
