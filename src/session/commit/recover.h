// Carrying out a transaction: by the commit that made it, and by the next use of the session after a crash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/session.h"
#include "session/commit/committed.h"
#include "session/commit/journal.h"
#include "session/commit/real_tree.h"
#include "session/commit/staging.h"

namespace caisson::session {

/// One commit at a time to one workspace, whichever session it is from. Waits a few seconds at most: a sandbox that
/// sees the directory can hold the same lock.
Result<sys::Fd> lockWorkspace(const sys::RootDir& real);

struct Applied {
  std::vector<bool> done;  ///< by action
  std::vector<NotCommitted> conflicts;
};

/// Writes the journal, applies it and removes it. When an action fails, or with `all_or_nothing` is a conflict, what
/// was done is taken back and the error returned.
Result<Applied> carryOut(const sys::RootDir& session, RealTree& tree, const Staging& staging,
                         const Transaction& transaction, Committed& committed, bool all_or_nothing);

/// A commit that was finished after a crash.
struct RecoveredCommit {
  std::size_t actions = 0;
  std::vector<NotCommitted> conflicts;  ///< the real file is neither what it was nor what it was to become
};

/// Finishes a commit that a crash interrupted, and removes what it left. Nothing when there was none. The caller holds
/// the session's lock. An error: it cannot be finished now; the journal stays.
Result<std::optional<RecoveredCommit>> recoverCommit(const sys::RootDir& session, const std::string& workspace);

/// Whether an interrupted commit waits: one look, without a lock.
bool isCommitPending(const sys::RootDir& session);

}  // namespace caisson::session
