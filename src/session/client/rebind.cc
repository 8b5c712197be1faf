// rebind: another real directory for a session, on the user's word.
#include <cerrno>

#include "host/facts.h"
#include "plan/workspace.h"
#include "session/client/session_context.h"
#include "session/commit/recover.h"
#include "session/store/workspace_root.h"
#include "session/tier/tier_files.h"

namespace caisson::session {

Result<void> SessionContext::rebind(const std::string& directory, WhenBusy when_busy) {
  auto held = lock();
  if (!held) return fail(held.error());
  if (metadata_.workspace.empty()) {
    return fail(plainError(Stage::usage, "session rebind", id(), "the session began without a workspace",
                           "create a session with --workspace DIR"));
  }
  if (directory.empty()) {
    return fail(plainError(Stage::usage, "session rebind", id(), "the directory's name is empty", "name a directory"));
  }
  Metadata after = metadata_;
  after.policy.filesystem.workspace.path = directory;
  const plan::HostFacts facts = host::collectFacts(after.policy);
  if (auto checked = plan::checkWorkspace(facts); !checked) return checked;
  if (auto checked = checkStateHidden(store_->paths(), facts, true); !checked) return checked;
  if (auto set = setRealDirectory(facts, after); !set) return set;
  after.policy.filesystem.workspace.path = after.workspace;
  if (after.first_identity.empty()) after.first_identity = metadata_.workspace_identity;
  if (!inLandlockTier(metadata_.policy)) {
    if (auto settled = settle("session rebind", when_busy); !settled) return settled;
  } else if (isInUse(directory_, kUntilAskersAreGone)) {
    return fail(sysError(Stage::state, "session rebind", id(), EBUSY,
                         "another process runs a command in the session: end that process first"));
  }
  if (directory_.stat(kJournal) && !isInterruptedIn(directory_, after.workspace_identity)) {
    // Nobody would finish it any more.
    const InterruptedCommit interrupted{directory_, id(), metadata_.workspace};
    if (auto aside = setAsideUnfinished(store_->paths(), interrupted); !aside) return aside;
    (void)note("interrupted commit kept aside", metadata_.workspace);
  }
  if (auto noted = note("rebound", metadata_.workspace + " to " + after.workspace); !noted) return noted;
  if (auto written = writeMetadata(directory_, after); !written) return written;
  metadata_ = std::move(after);
  (void)finishInterruptedCommit();  // in the directory that was moved; a failure only blocks the next commit
  return reload();
}

}  // namespace caisson::session
