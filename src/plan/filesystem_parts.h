// Steps that a private root of the host's system directories and one of an image have in common.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Of the tmpfs that holds generated files and mount points.
inline constexpr std::uint64_t kRootBytes = 4 * policy::kMiB;
inline constexpr std::uint64_t kRootInodes = 2048;

/// /etc/passwd and /etc/group of a sandbox without an image.
std::string passwdFile();
std::string groupFile();
std::string hostsFile(const std::string& hostname);

/// Adds /etc/resolv.conf: for the egress, or the host's.
void addResolver(const policy::Policy& policy, Plan& plan);
void addDevices(Plan& plan);
void addProc(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Checks that CAISSON_HOME can hold the directories that must be on disk, and warns of those that will be in memory.
Result<void> checkDirectoryStores(const policy::Policy& policy, const HostFacts& host, Plan& plan);
/// Adds the size-limited directories of the policy.
void addTemporary(const policy::Policy& policy, const HostFacts& host, Plan& plan);
/// Why a directory cannot be on disk; empty if it can.
std::string whyNotOnDisk(const HostFacts& host, const Plan& plan);

/// Adds a link from /workspace to a workspace that is shown elsewhere, unless another path is shown there.
void linkWorkspace(const HostFacts& host, const std::string& target, Plan& plan);
/// The last steps in a root of our own: the workspace with its link, then the rules that apply to all paths above, such
/// as denied ones.
Result<void> addWorkspaceAndRules(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
