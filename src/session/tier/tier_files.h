// The files of a session in the landlock tier: a copy of the workspace, its content when the session began, and the
// private directories.
//
// Without a mount namespace commands reach these by their paths on the host. They are in the session's directory; those
// of a root caller, whose payload cannot enter CAISSON_HOME, below /var/tmp, in a directory that others may only pass
// through.
#pragma once

#include "caisson/session.h"
#include "plan/plan.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// The layer with the workspace's content when the session began. No command can read or write it.
inline constexpr const char* kBaseLayer = "base";

/// Whether the commands of sessions with this policy run in the landlock tier.
bool inLandlockTier(const policy::Policy& policy);
/// Of a session in the tier: whether its commands write to the real workspace (mode `rw`), so that there is no copy.
bool writesDirectly(const Metadata& metadata);

/// Opens the directory of these files; creates it if missing.
Result<sys::RootDir> openTierFiles(const SessionPaths& paths, const Metadata& metadata);

/// Opens what the session's commands have as workspace: the copy, or the real directory.
Result<sys::RootDir> openTierWorkspace(const SessionPaths& paths, const Metadata& metadata);

/// Copies the real workspace for a new session, without the secret files that `scan` lists, and with git configurations
/// without their credentials. Special files and unreadable ones are left out.
Result<void> copyWorkspace(const SessionPaths& paths, const Metadata& metadata, const plan::WorkspaceScan& scan);

/// After a commit while no command ran: what was committed is no longer a change of the session.
Result<void> advanceBase(const SessionPaths& paths, const Metadata& metadata,
                         const std::vector<ManifestEntry>& committed);

/// Removes files that are not in the session's own directory. Not an error if there are none, or if their place belongs
/// to another user.
Result<void> removeTierFiles(const std::string& id);

/// Removes such files of sessions whose directory is gone, with its CAISSON_HOME for example.
void removeAbandonedTierFiles();

}  // namespace caisson::session
