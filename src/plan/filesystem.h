// The file tree of a sandbox, step by step.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

inline constexpr std::string_view kWorkspace = "/workspace";
inline constexpr std::string_view kHome = "/home/sandbox";

/// Adds the steps for a private root to `plan`, with its working directory, notices and masked secrets. Denied paths
/// come after, and so override, every mount that contains them.
Result<void> planOwnRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Adds the steps for level `process`: a read-only view of the host's root, with private /tmp, /run, /dev/shm, /proc
/// and terminals over it and the homes covered. Landlock restricts reading of the rest.
Result<void> planHostRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// The name of the cache of the workspace at this path, below CAISSON_HOME/caches. One per kind of use (Policy::use):
/// what the program of one kind leaves there must not reach a sandbox of another.
std::string workspaceCache(const std::string& use, const std::string& path);

/// The name of a cache below CAISSON_HOME/caches, or "" where there can be none: without a workspace, and for a root
/// caller on a file system without idmapped mounts.
std::string cacheOf(const policy::Policy& policy, const policy::Tmpfs& tmpfs, const HostFacts& host, const Plan& plan);

}  // namespace caisson::plan
