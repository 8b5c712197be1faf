// Undoing a commit: a second transaction, made of what the commit kept, under the conflict rules of a commit.
#pragma once

#include <optional>
#include <string>

#include "caisson/session.h"
#include "session/commit/kept_commits.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Finishes an uncommit of the session that was interrupted; its report. The caller holds the session's lock.
Result<std::optional<CommitReport>> finishUncommit(const SessionPaths& paths, const std::string& session);

/// Undoes the newest commit of a session that is not undone yet. Works without the session, which may be gone; the
/// caller holds its lock if it is there. First finishes an uncommit that was interrupted.
Result<CommitReport> uncommit(const SessionPaths& paths, const std::string& session, bool dry_run);

}  // namespace caisson::session
