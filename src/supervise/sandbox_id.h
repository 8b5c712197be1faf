#pragma once

#include <string>

namespace caisson::supervise {

/// 16 random bytes as text, so that ids cannot be guessed. Empty if the host has no randomness.
std::string newSandboxId();

}  // namespace caisson::supervise
