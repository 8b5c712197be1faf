#include "session/commit/recover.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "session/commit/apply.h"
#include "session/layers/steps.h"
#include "session/store/workspace_root.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::RootDir;

constexpr int kLockTries = 500;
constexpr unsigned kLockPauseUs = 10'000;

/// Syncs the workspace, adds what was applied to `committed`, and removes the journal: in this order a crash at most
/// repeats a part.
Result<void> finish(const RootDir& session, RealTree& tree, const Transaction& transaction, Committed& committed,
                    const Applied& applied) {
  const Fd root(::openat(tree.root().descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root || ::syncfs(root.get()) != 0) return fail(sysError(Stage::state, "syncfs", tree.root().knownAs(), errno));
  step("commit: synced");
  tree.forget();
  for (std::size_t index = 0; index < transaction.actions.size(); ++index) {
    const Action& action = transaction.actions[index];
    // After a merge the session still has its own version: committing that later is a conflict again.
    if (!applied.done[index] || action.merged) continue;
    const auto left = tree.look(action.path);
    if (!left || !*left || ((*left)->inode == action.inode && !action.isUnchanged(**left))) continue;
    committed.add(action.path, **left, action.sha256);
  }
  for (const std::string& directory : transaction.known_directories) {
    const auto left = tree.root().stat(directory);
    if (left) committed.add(directory + "/", *left);
  }
  if (auto saved = committed.save(); !saved) return saved;
  step("commit: recorded");
  if (auto removed = session.remove(kJournal); !removed) return removed;
  step("commit: journal removed");
  return {};
}

}  // namespace

Result<Fd> lockWorkspace(const RootDir& real) {
  Fd turn(::openat(real.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int locked = -1;
  for (int tries = 0; turn && tries < kLockTries; ++tries) {
    locked = ::flock(turn.get(), LOCK_EX | LOCK_NB);
    if (locked == 0 || errno != EWOULDBLOCK) break;
    ::usleep(kLockPauseUs);
  }
  if (locked == 0) return turn;
  return fail(sysError(Stage::state, "flock", real.knownAs(), errno,
                       "another commit is under way, or a program has locked the directory; try again"));
}

Result<Applied> carryOut(const RootDir& session, RealTree& tree, const Staging& staging, const Transaction& transaction,
                         Committed& committed, bool all_or_nothing) {
  Applied applied{std::vector<bool>(transaction.actions.size(), false), {}};
  if (transaction.actions.empty()) return applied;
  if (auto synced = staging.sync(); !synced) return fail(synced.error());
  step("commit: staged");
  if (auto written = writeJournal(session, transaction); !written) return fail(written.error());
  step("commit: journal written");
  Applier applier(tree, staging, transaction, committed, false);
  std::optional<Error> failure;
  for (std::size_t index = 0; index < transaction.actions.size() && !failure; ++index) {
    auto done = applier.apply(index);
    if (!done) {
      failure = done.error();
    } else if (done->empty()) {
      applied.done[index] = true;
    } else if (all_or_nothing) {
      failure = withCode(plainError(Stage::state, "session commit", transaction.actions[index].path, *done,
                                    "look at the changes again; nothing was written"),
                         ErrorCode::digest_mismatch);
    } else {
      applied.conflicts.push_back({transaction.actions[index].path, *done});
    }
  }
  step("commit: applied");
  if (failure) {
    const std::vector<std::string> left = applier.undo();
    applier.removeTemporaries();
    if (!left.empty()) {
      failure->hint = "these paths of the real workspace stay changed: ";
      for (const std::string& path : left) failure->hint += (path == left.front() ? "" : ", ") + path;
    } else if (failure->hint.empty()) {
      failure->hint = "nothing was written; remove the cause and commit again";
    }
    (void)session.remove(kJournal);
    return fail(*failure);
  }
  applier.removeTemporaries();
  if (auto finished = finish(session, tree, transaction, committed, applied); !finished) {
    Error error = finished.error();
    error.hint = "the files are written, but that is not recorded yet: the next command on the session does it";
    return fail(std::move(error));
  }
  return applied;
}

bool isCommitPending(const RootDir& session) {
  struct stat status;
  return ::fstatat(session.descriptor(), kStagingName, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::optional<RecoveredCommit>> recoverCommit(const RootDir& session, const Metadata& metadata) {
  if (!isCommitPending(session)) return std::nullopt;
  auto real = openRealDirectory(metadata);
  struct stat status{};
  auto journal = readJournal(session);
  if (!journal) return fail(journal.error());
  // Without its workspace there is nothing to finish.
  const bool gone = !real && (real.error().sys_errno == ENOENT || real.error().sys_errno == ENOTDIR);
  if (!real && !gone) return fail(real.error());
  const bool same = real && ::fstat(real->descriptor(), &status) == 0 && *journal &&
                    status.st_dev == (*journal)->workspace_device && status.st_ino == (*journal)->workspace_inode;
  if (!*journal || !same) {
    if (auto removed = session.remove(kJournal); !removed) return fail(removed.error());
    if (auto removed = Staging::remove(session, real ? &*real : nullptr); !removed) return fail(removed.error());
    return std::nullopt;
  }
  const auto turn = lockWorkspace(*real);
  if (!turn) return fail(turn.error());
  auto staging = Staging::open(session, *real);
  if (!staging) return fail(staging.error());
  auto committed = Committed::load(session);
  if (!committed) return fail(committed.error());
  RealTree tree(*real);
  Applier applier(tree, *staging, **journal, *committed, true);
  Applied applied{std::vector<bool>((*journal)->actions.size(), false), {}};
  for (std::size_t index = 0; index < (*journal)->actions.size(); ++index) {
    auto done = applier.apply(index);
    if (!done) return fail(done.error());
    applied.done[index] = done->empty();
    if (!done->empty()) applied.conflicts.push_back({(*journal)->actions[index].path, *done});
  }
  tree.forget();
  applier.removeTemporaries();
  if (auto finished = finish(session, tree, **journal, *committed, applied); !finished) return fail(finished.error());
  if (auto removed = Staging::remove(session, &*real); !removed) return fail(removed.error());
  return RecoveredCommit{(*journal)->actions.size(), std::move(applied.conflicts)};
}

}  // namespace caisson::session
