// The percent signs of addresses (RFC 3986).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::mcp {

/// The bytes that `text` stands for; nothing if a percent sign is not followed by two digits, or stands for NUL.
std::optional<std::string> decodePercent(std::string_view text);

/// `path` as it can stand in an address: slashes stay.
std::string encodePercent(std::string_view path);

}  // namespace caisson::mcp
