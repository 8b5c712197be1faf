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
#include "session/commit/set_aside.h"
#include "session/commit/staging.h"
#include "sys/file_identity.h"

namespace caisson::session {

/// Locks the real workspace, so that one commit at a time changes it, of all sessions. Waits 5 s at most: a sandbox
/// that sees the directory can hold the same lock.
Result<sys::Fd> lockWorkspace(const sys::RootDir& real);

struct Applied {
  std::vector<bool> done;  ///< by action
  std::vector<NotCommitted> conflicts;
  std::vector<std::string> unchanged_directories;  ///< known ones in which the host changed nothing meanwhile
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
  bool undoing = false;                 ///< it was an uncommit
  std::vector<NotCommitted> conflicts;  ///< the real file is neither what it was nor what it was to become
};

/// For people: what was done, and which files were left alone. Of an uncommit: its report.
std::string describeFinished(const RecoveredCommit& recovered);
std::string describeFinished(const CommitReport& undone);

/// Finishes a commit that a crash interrupted, and removes what it left. Nothing when there was none, or when it had
/// not written its journal. The caller holds the session's lock. An error: it cannot be finished now, for example since
/// the workspace is not at its path; the journal and everything that the commit moved out of the workspace stay. Where
/// that cannot change, because the journal is damaged or about another directory than `real`, the commit is set aside
/// (set_aside.h), which is an error, too.
Result<std::optional<RecoveredCommit>> recoverCommit(const SessionPaths& paths, const InterruptedCommit& commit,
                                                     const Result<sys::RootDir>& real);

/// Before the session is destroyed, or gets another directory: sets aside what recoverCommit() could not finish.
Result<void> setAsideUnfinished(const SessionPaths& paths, const InterruptedCommit& commit);

/// Whether an interrupted commit is about this directory.
bool isInterruptedIn(const sys::RootDir& session, const sys::FileIdentity& workspace);

/// Whether a commit or an uncommit is under way or was interrupted: without a lock.
bool isCommitPending(const sys::RootDir& session);

}  // namespace caisson::session
