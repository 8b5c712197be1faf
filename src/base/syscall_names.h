// Names of system calls on the supported architectures.
#pragma once

#include <optional>
#include <string_view>

#include "base/native_architecture.h"

namespace caisson {

/// The number of a call, or nullopt.
std::optional<int> syscallNumber(std::string_view name, Architecture architecture = kNative);

/// The name of a call, "" if unknown.
std::string_view syscallName(int number, Architecture architecture = kNative);

/// Whether any supported architecture (x86_64, aarch64) has this call. A policy that names `open`, which aarch64 lacks,
/// still loads there, while a misspelt name is an error everywhere.
bool isSyscallName(std::string_view name);

}  // namespace caisson
