// Carrying out a transaction: by the commit that made it, and by the next use of the session after a crash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/session.h"
#include "session/commit/committed.h"
#include "session/commit/journal.h"
#include "session/commit/kept_commits.h"
#include "session/commit/real_tree.h"
#include "session/commit/staging.h"

namespace caisson::session {

/// Locks the real workspace, so that one commit at a time changes it, of all sessions. Waits 5 s at most: a sandbox
/// that sees the directory can hold the same lock.
Result<sys::Fd> lockWorkspace(const sys::RootDir& real);

struct Applied {
  std::vector<bool> done;  ///< by action
  std::vector<NotCommitted> conflicts;
};

/// Where a transaction keeps what it moves out of the workspace.
struct Keeping {
  const KeptCommit* kept = nullptr;
  bool replaced = true;  ///< false: only what could not be put back after a failure; Transaction::kept is empty then
};

/// Writes the journal, applies the transaction, keeps what it replaced, records it in `committed` and removes the
/// journal. When an action fails, or with `all_or_nothing` meets a conflict, what was done
/// is reverted as far as possible; the error names what stays changed. When only the recording fails, the files stay
/// written and recoverCommit() finishes it.
Result<Applied> carryOut(const sys::RootDir& session, RealTree& tree, const Staging& staging,
                         const Transaction& transaction, Committed& committed, const Keeping& keeping,
                         bool all_or_nothing);

/// A commit that was finished after a crash.
struct RecoveredCommit {
  std::size_t actions = 0;
  std::vector<NotCommitted> conflicts;  ///< the real file is neither what it was nor what it was to become
};

/// Finishes a commit that a crash interrupted, and removes what it left. Nothing when there was none, when it had not
/// written its journal, when its workspace is gone, or when the journal is about another directory than `real`, the
/// workspace now. The caller holds the session's lock. An error: it cannot be finished now, for example since something
/// else has the workspace's name; the journal stays.
Result<std::optional<RecoveredCommit>> recoverCommit(const SessionPaths& paths, const sys::RootDir& session,
                                                     const Result<sys::RootDir>& real);

/// Whether a commit is under way or was interrupted: one stat, without a lock.
bool isCommitPending(const sys::RootDir& session);

}  // namespace caisson::session
