#pragma once

#include <string>

namespace caisson::supervise {

/// "cs-" and 16 random bytes in hexadecimal, so that ids cannot be guessed. Empty if the host has no randomness.
std::string newSandboxId();

}  // namespace caisson::supervise
