// Host paths that a policy names (`filesystem.read_only` and `read_write`), and what stays hidden in them: the caller's
// credentials and caisson's own state.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Names below `tree`, relative to it, that usually hold the caller's credentials and histories; whether they exist is
/// not checked.
std::vector<std::string> homeSecretsIn(const HostFacts& host, const std::string& tree);

/// Whether the sandbox shows this directory with the system of the host in any case, with the same rights: naming it
/// shows nothing more.
bool isShownAnyway(const policy::Policy& policy, const HostFacts& host, const std::string& path);

/// Whether a named path is itself a secret, or lies in a directory of secrets: then it is what the user wants to show.
bool isNamedSecret(const HostFacts& host, const std::string& path);

/// caisson's own state and configuration: every name that they have on the host.
std::vector<std::string> ownPlaces(const HostFacts& host);

/// caisson's own state and configuration below `tree`, relative to it: a payload would read what others ran, and in a
/// writable tree rewrite it. No policy can show it.
std::vector<std::string> ownStateIn(const HostFacts& host, const std::string& tree);

/// Whether `path` is a workspace that caisson made in its state directory: of a session, or for a check of `caisson
/// verify`.
bool isOwnWorkspace(const std::string& own_state, const std::string& path);

/// Masks other names of them in what is shown of the host's system and of toolchains.
void maskOwnMounts(const HostFacts& host, Plan& plan);

/// Mounts the paths of filesystem.read_only and read_write at the same path as on the host (links resolved), and masks
/// caisson's state and, unless workspace.show_secrets is set, credentials in them. Those in the workspace are mounted
/// with it, see addOwnPaths(). An error if a path is missing, is `/`, or is neither a file nor a directory.
Result<void> addNamedPaths(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// Shows named paths of the workspace at their own paths too, and the workspace itself if a shown tree contains it:
/// exactly as the workspace at `target` shows them. Call when everything in that is mounted and masked.
Result<void> addOwnPaths(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan);

/// The same checks and warnings without a mount, for the landlock tier, which can mask nothing.
Result<void> checkNamedPaths(const HostFacts& host, Plan& plan);

/// Adds a link at each path that the policy names through a link, to the path that is mounted. Skips denied names.
void addLinkNames(const policy::Policy& policy, const HostFacts& host, Plan& plan);

/// An error if a shown path is in caisson's own state (audit log, approvals) or configuration, or holds it and cannot
/// hide it, as in the landlock tier. Elsewhere masks hide it. Call after the workspace was added.
Result<void> checkOwnState(const policy::Policy& policy, const HostFacts& host, const Plan& plan);

}  // namespace caisson::plan
