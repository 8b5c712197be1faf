// Names of system calls on the target architecture.
#pragma once

#include <optional>
#include <string_view>

namespace caisson {

/// The number of a call on this architecture, or nullopt.
std::optional<int> syscallNumber(std::string_view name);

/// The name of a call on this architecture, "" if unknown.
std::string_view syscallName(int number);

/// Whether any supported architecture (x86_64, aarch64) has this call. A policy that names `open`, which aarch64 lacks,
/// still loads there, while a misspelt name is an error everywhere.
bool isSyscallName(std::string_view name);

}  // namespace caisson
