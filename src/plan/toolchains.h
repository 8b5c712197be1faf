// Shows toolchains of the caller's home (`filesystem.toolchains`), read-only at their own paths: programs have them
// built in.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Adds the mounts of host.toolchains. Call before other paths of the host are added: those may lie below one.
void addToolchains(const HostFacts& host, Plan& plan);

/// The payload's PATH: toolchains first, in the order of the caller's PATH.
std::string programPath(const std::vector<Toolchain>& toolchains);

}  // namespace caisson::plan
