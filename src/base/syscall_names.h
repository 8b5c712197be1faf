// The names of the kernel's system calls on the architecture this is compiled for.
#pragma once

#include <optional>
#include <string_view>

namespace caisson {

/// The number of a call on this architecture, or nothing.
std::optional<int> syscallNumber(std::string_view name);

/// The name of a call's number on this architecture; "" when it is not known.
std::string_view syscallName(int number);

/// Whether any supported architecture (x86_64, aarch64) has a call of this name. A policy may name `open`, which
/// aarch64 does not have, and still load there; a misspelt name is known nowhere.
bool isSyscallName(std::string_view name);

}  // namespace caisson
