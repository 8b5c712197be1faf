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

/// False if nothing under this policy can execute a shell, installed or brought by the payload: only one program runs,
/// or the executable lists leave no shell and no directory for one. Does not check the first program.
bool canStartShell(const Policy& policy);

}  // namespace caisson::policy
