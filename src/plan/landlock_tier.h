// The tier without namespaces, for hosts that forbid them: the payload runs in the host's own file tree, and Landlock,
// the system-call filter and limits are the whole sandbox. A policy or the user must name it.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// What the tier does not protect: a warning of every plan and result, and printed before the program starts.
inline constexpr std::string_view kLandlockTierLosses =
    "landlock tier: no namespaces. Not protected: the names and attributes of the host's files, its user names, its "
    "process list with command lines, its figures in /proc, signals to your other processes (before Linux 6.12), the "
    "host's name, resource use";

/// Plans the workspace and private directories, and warns of everything that the tier does not protect. Fails for
/// settings that need a mount namespace. The Landlock rules follow in landlockForHostRoot(), the filter in
/// filterForLandlockTier().
Result<void> planLandlockTier(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Landlock cannot take a file out of a directory that it opens, so keys and passwords of a home are visible in every
/// directory that holds them: an error unless the policy shows secrets, then a warning.
Result<void> checkHomeSecrets(const policy::Policy& policy, const HostFacts& host, const HostPath& shown, Plan& plan);

}  // namespace caisson::plan
