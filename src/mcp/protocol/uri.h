// Percent-encoding (RFC 3986).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::mcp {

/// Decodes `text`; nothing if a percent sign is not followed by two hexadecimal digits, or if the result has a NUL.
std::optional<std::string> decodePercent(std::string_view text);

/// Encodes `path` for an address; slashes are kept.
std::string encodePercent(std::string_view path);

}  // namespace caisson::mcp
