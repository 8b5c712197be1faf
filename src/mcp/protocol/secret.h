// Secrets of the user that servers share: random, stored in caisson's state, readable by their owner only.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hmac.h"

namespace caisson::mcp {

/// The secret of this name; created at the first use. Servers that start at the same time get the same one.
Result<std::string> userSecret(std::string_view name);

/// `count` random hexadecimal digits: even, at most 512. Ends the process if the kernel gives no random bytes.
std::string randomDigits(std::size_t count);

using caisson::hmacSha256;
using caisson::sameSecret;

}  // namespace caisson::mcp
