// The file tree of a sandbox, step by step.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

inline constexpr std::string_view kWorkspace = "/workspace";
inline constexpr std::string_view kHome = "/home/sandbox";

/// Adds the steps for a root of our own to `plan`, with its working directory, notices and masked secrets.
/// A denied path comes after, and so wins over, every mount that contains it.
Result<void> planOwnRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Adds the steps for level `process`: the host's root, with private /tmp, /dev/shm and /proc over it.
Result<void> planHostRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Whether a name at the top of a workspace is one that usually holds a secret (F6).
bool looksSecret(std::string_view name);

}  // namespace caisson::plan
