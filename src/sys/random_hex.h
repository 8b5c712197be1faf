// Random names that cannot be guessed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace caisson::sys {

/// Two hexadecimal digits for each of `count` random bytes; at most 256. Nothing, with errno, if the kernel gives none.
std::optional<std::string> randomHex(std::size_t count);

}  // namespace caisson::sys
