// HMAC with SHA-256.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

/// HMAC (RFC 2104) with SHA-256, in hexadecimal. The key has at most 64 bytes.
std::string hmacSha256(std::string_view key, std::string_view text);

/// Compares in a time that does not depend on where the texts differ.
bool sameSecret(std::string_view a, std::string_view b);

}  // namespace caisson
