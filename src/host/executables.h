// Resolves executable lists on this host: paths of the named programs, their dependencies, and every other name of the
// same file.
//
// Observes only; plan/executables.h decides. Costs a few file reads per listed program, and nothing without lists.
#pragma once

#include "host/root_view.h"
#include "plan/plan.h"
#include "policy/model.h"

namespace caisson::host {

/// Empty without lists. `toolchains` come before the system in the payload's PATH. Without an allowlist, busybox and
/// toybox are blocked too: they could act as any blocked program.
plan::ExecutableFacts observeExecutables(const policy::Policy& policy, const std::vector<plan::Toolchain>& toolchains);

/// The same for programs of another root. `path`: the payload's PATH. A listed directory is marked as such, and nothing
/// below it is looked at.
plan::ExecutableFacts observeExecutables(const policy::Policy& policy, const RootView& root, const std::string& path);

}  // namespace caisson::host
