// The file tree of a sandbox, step by step.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

inline constexpr std::string_view kWorkspace = "/workspace";
inline constexpr std::string_view kHome = "/home/sandbox";

/// Adds the steps for a root of our own to `plan`, with its working directory, notices and masked secrets.
/// A denied path comes after, and so wins over, every mount that contains it.
Result<void> planOwnRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Adds the steps for level `process`: a read-only view of the host's root, with private /tmp, /run, /dev/shm, /proc
/// and terminals over it and the homes covered. What of the rest may be read is Landlock's part.
Result<void> planHostRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
