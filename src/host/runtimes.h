// Finds the program of an OCI runtime.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "plan/plan.h"

namespace caisson::host {

/// The program `name` in the first of these directories that has it, with links resolved. The caller's PATH is not
/// used: it may name a directory that a payload wrote. An error if there is none, or if someone other than root could
/// have replaced it.
Result<std::string> findRuntime(const std::string& name, std::span<const std::string> directories);
/// The program at the absolute path `path` of the owner's configuration, which may also belong to the caller.
Result<std::string> checkRuntimePath(const std::string& path);

/// The runtime's program, by the owner's configuration or in the system's directories, and what a plan for it needs.
plan::RuntimeFacts observeRuntime(policy::Runtime runtime);

}  // namespace caisson::host
