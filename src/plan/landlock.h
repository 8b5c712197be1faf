// Landlock rules for a plan: which rights exist at an ABI, and which paths get which.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace caisson::plan {

/// Every filesystem right that `abi` knows.
std::uint64_t filesystemRights(int abi);

inline constexpr std::uint64_t kNoRights = 0;
/// To read files and list directories.
std::uint64_t readRights();
/// readRights() and execution.
std::uint64_t executeRights();
/// All rights of `abi` except execute and creating devices; reading is included.
std::uint64_t writeRights(int abi);

/// Rules for a private root: read everywhere except in write-only directories, execute where programs are, write where
/// `plan.steps` allows it.
Landlock landlockForOwnRoot(const Plan& plan, int abi);

/// Rules for the host's root: system directories, a few files of /etc, private mounts, and paths that the policy names.
Landlock landlockForHostRoot(const policy::Policy& policy, const HostFacts& host, const Plan& plan, int abi);

}  // namespace caisson::plan
