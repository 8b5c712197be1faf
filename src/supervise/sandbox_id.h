#pragma once

#include <string>

namespace caisson::supervise {

/// 16 random bytes as text; nobody can guess another sandbox's. Empty when the host gives no randomness.
std::string newSandboxId();

}  // namespace caisson::supervise
