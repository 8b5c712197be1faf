// Secrets of the user that servers share: random, stored in caisson's state, readable by their owner only.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::mcp {

/// The secret of this name; created at the first use. Servers that start at the same time get the same one.
Result<std::string> userSecret(std::string_view name);

/// `count` random hexadecimal digits: even, at most 512. Ends the process if the kernel gives no random bytes.
std::string randomDigits(std::size_t count);

/// HMAC (RFC 2104) with SHA-256, in hexadecimal. The key has at most 64 bytes.
std::string hmacSha256(std::string_view key, std::string_view text);

/// Compares in a time that does not depend on where the texts differ.
bool sameSecret(std::string_view a, std::string_view b);

}  // namespace caisson::mcp
