// The workspace: which directory it is, where and how it is shown, and what is hidden in it.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Files that a payload may make in its workspace and in `read_write` paths where the policy has no max_inodes.
inline constexpr std::uint64_t kWorkspaceInodes = 1'000'000;

/// In WorkspaceScan::protected_paths: all of the workspace, which lies in a protected directory of the host.
inline constexpr std::string_view kWholeWorkspace = ".";

inline constexpr std::string_view kNoRollback = "workspace is writable directly: its changes cannot be rolled back";

/// Whether `path` is `directory` or lies below it. Both are absolute and normal.
bool below(std::string_view path, std::string_view directory);

/// The files of workspace.show_files below a directory of the host, relative to it.
std::vector<std::string> shownFilesAt(const policy::Workspace& workspace, const std::string& directory);

/// The same for the workspace at `directory`, whose files may be named by their paths inside.
std::vector<std::string> shownFiles(const policy::Workspace& workspace, const std::string& directory);

/// Whether `path` is `/`, a home directory of the caller or another user, or above one.
bool holdsHome(const HostFacts& host, const std::string& path);

/// An error if the workspace is missing, no directory, or `/`.
Result<void> checkWorkspace(const HostFacts& host);

/// Whether the policy names no workspace and the current directory is `/`, a home, or above one: it is then not used.
bool currentDirectoryIsTooBroad(const policy::Policy& policy, const HostFacts& host);

/// If currentDirectoryIsTooBroad(): adds a notice and returns true; the sandbox then has no workspace.
bool declineCurrentDirectory(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Where the workspace is shown at level full: /workspace, or its own path with workspace.same_path. Fails if that path
/// is one that the sandbox builds itself, or would cover a tmpfs.
Result<std::string> workspaceTarget(const policy::Policy& policy, const HostFacts& host);

/// The directory `requested` (the policy's, or that of one command) as an absolute path inside: relative ones are in
/// the workspace, at level none in the caller's directory. An error for a relative one without a workspace; does not
/// check that the directory exists.
Result<std::string> directoryInside(const Plan& plan, std::string_view requested);

/// Adds the workspace at `target`, with secrets and denied paths hidden; the working directory becomes `target`. Adds
/// nothing for mode `none`, or if declineCurrentDirectory().
Result<void> addWorkspace(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan);

}  // namespace caisson::plan
