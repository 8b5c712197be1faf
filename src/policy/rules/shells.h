// Shells, and whether a policy allows one to start.
//
// By name only: tool/consent.h checks on the host which file a name resolves to, and whether a file of another name is
// a copy of a shell.
#pragma once

#include <span>
#include <string_view>

#include "policy/model.h"

namespace caisson::policy {

/// The names of shells, and of programs that contain one.
std::span<const std::string_view> shellNames();

/// Whether the last part of this path or name is a shell's name.
bool isShellName(std::string_view program);

/// False if, judged by names, no shell can start: only one program runs, allowed_executables has neither a shell nor a
/// usual program directory, or blocked_executables has every shell. Does not look into other listed directories, nor
/// check the first program. Always true at level none and in tier landlock, and with executable_directories unless only
/// one program runs.
bool canStartShell(const Policy& policy);

}  // namespace caisson::policy
