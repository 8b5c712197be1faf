// The host trees a person shows to a sandbox: the workspace, --ro and --rw paths, and what is denied in them.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Files that a payload may make in its workspace and in `read_write` paths where the policy has no max_inodes.
inline constexpr std::uint64_t kWorkspaceInodes = 1'000'000;

/// Whether a path has wildcards in it.
bool isPattern(std::string_view path);

/// The denied patterns below the workspace, relative to it.
std::vector<std::string> deniedPatterns(const policy::Policy& policy);

/// Whether `path` is `directory` or lies below it. Both are absolute and normal.
bool below(std::string_view path, std::string_view directory);

/// Whether the policy names no workspace and the current directory is `/`, a home, or above one.
bool currentDirectoryIsTooBroad(const policy::Policy& policy, const HostFacts& host);

/// F4: whether the current directory is too broad to be taken as workspace unasked: `/`, a home, or above one. Says so.
bool declineCurrentDirectory(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Where the workspace is shown at level full: /workspace, or its own path if the policy says so. Fails if that path is
/// one that the sandbox builds itself.
Result<std::string> workspaceTarget(const policy::Policy& policy, const HostFacts& host);

/// The directory `requested` (the policy's, or that of one command) as an absolute path inside: relative ones are in
/// the workspace.
Result<std::string> directoryInside(const Plan& plan, std::string_view requested);

/// Adds the workspace at `target`, with secrets and denied paths hidden; the working directory becomes `target`.
Result<void> addWorkspace(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan);

/// Adds the paths of filesystem.read_only and read_write, each at its own name.
Result<void> addNamedPaths(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Adds a link at the name that the policy gives, where that leads through a link to the path that is mounted.
void addLinkNames(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Adds masks for the denied paths that no overlay hides. Comes after every mount it could lie in, and so wins.
/// In a tree that is writable directly, a path that does not exist yet cannot be held without privilege (F6).
void addDenied(const policy::Policy& policy, const HostFacts& host, const std::string& workspace, Plan& plan);

/// caisson's own state (audit log, approvals, quarantine) is hidden in what is shown; no tree of it can be shown
/// itself, and none that holds it in the landlock tier, which can hide nothing. Comes after the workspace was added.
Result<void> checkOwnState(const HostFacts& host, const Plan& plan);

/// Patterns, and paths through a link, are refused rather than half enforced.
Result<void> checkDenied(const policy::Policy& policy, const HostFacts& host);

}  // namespace caisson::plan
