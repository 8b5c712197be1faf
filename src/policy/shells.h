// Shells, and whether a policy lets one start (SPEC L1, INV-S1).
//
// By name: what file a name stands for on this host, and whether a file of another name is a shell's copy, is for
// those to say who may look at the host (tool/consent.h).
#pragma once

#include <span>
#include <string_view>

#include "policy/model.h"

namespace caisson::policy {

/// The names that shells are installed under, and of programs that contain one.
std::span<const std::string_view> shellNames();

/// Whether the last part of this path or name is one of them.
bool isShellName(std::string_view program);

/// False if nothing that runs under this policy can execute a shell of the system, or one that it brought: only one
/// program runs at all, or the executable lists leave no shell and no place to put one. The first program itself is
/// not looked at.
bool canStartShell(const Policy& policy);

}  // namespace caisson::policy
