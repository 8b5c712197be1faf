// Base64 (RFC 4648, section 4), strict: padding is required, other characters are rejected.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson {

std::string encodeBase64(std::string_view bytes);
/// nullopt if the text is not the one encoding of some bytes: unused bits must be zero, too.
std::optional<std::string> decodeBase64(std::string_view text);

}  // namespace caisson
