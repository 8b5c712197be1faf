// The server's own log: one JSON object per line on standard error. CAISSON_LOG sets the least severe level that is
// written (debug, info, warning, error, off); `info` without it.
#pragma once

#include <string_view>

#include "mcp/json.h"

namespace caisson::mcp {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

/// The level of a name; nothing for an unknown one.
std::optional<LogLevel> logLevelOf(std::string_view name);

/// Writes one line: time, level, message, and the members of `fields`. Safe from any thread.
void writeLog(LogLevel level, std::string_view message, const Json& fields = Json::object());

}  // namespace caisson::mcp
