// Host paths that a policy names (`filesystem.read_only` and `read_write`), and what stays hidden in them: the caller's
// credentials and caisson's own state.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Names below `tree`, relative to it, that hold the caller's credentials and histories.
std::vector<std::string> homeSecretsIn(const HostFacts& host, const std::string& tree);

/// caisson's own state and configuration below `tree`, relative to it: a payload would read what others ran, and in a
/// writable tree rewrite it. No policy can show it.
std::vector<std::string> ownStateIn(const HostFacts& host, const std::string& tree);

/// Adds the paths of filesystem.read_only and read_write, each at its own name.
Result<void> addNamedPaths(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Adds a link at the name that the policy gives, where that leads through a link to the path that is mounted.
void addLinkNames(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// caisson's own state (audit log, approvals, quarantine) is hidden in what is shown; no tree of it can be shown
/// itself, and none that holds it in the landlock tier, which can hide nothing. Comes after the workspace was added.
Result<void> checkOwnState(const policy::Policy& policy, const HostFacts& host, const Plan& plan);

}  // namespace caisson::plan
