// Percent-encoding (RFC 3986).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson {

/// Decodes %XX; nothing if an escape is invalid, or if the result has a NUL. `plus`: "+" is a blank.
std::optional<std::string> decodePercent(std::string_view text, bool plus = false);

/// Encodes all but unreserved characters and those in `kept`.
std::string encodePercent(std::string_view text, std::string_view kept = {});

}  // namespace caisson
