#include "session/commit/recover.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>

#include "base/path_parts.h"
#include "session/commit/apply.h"
#include "session/layers/steps.h"
#include "sys/file_identity.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::RootDir;

constexpr int kLockTries = 500;
constexpr unsigned kLockPauseUs = 10'000;

/// Waits until the workspace, and what is kept of it, are on the disk: one call if both are on one file system.
Result<void> syncBoth(const RootDir& workspace, const KeptCommit* kept) {
  struct stat there{}, here{};
  const Fd root(::openat(workspace.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root || ::syncfs(root.get()) != 0) return fail(sysError(Stage::state, "syncfs", workspace.knownAs(), errno));
  if (kept == nullptr) return {};
  if (::fstat(root.get(), &there) == 0 && ::fstat(kept->objects(), &here) == 0 && there.st_dev == here.st_dev)
    return {};
  if (::syncfs(kept->objects()) != 0) return fail(sysError(Stage::state, "syncfs", kept->name(), errno));
  return {};
}

CommitRecord recordOf(const RootDir& workspace, const Transaction& transaction, const KeptCommit& kept,
                      const Applied& applied) {
  CommitRecord record{.workspace = workspace.knownAs(), .time = std::time(nullptr), .transaction = transaction};
  for (std::size_t index = 0; index < applied.done.size(); ++index) {
    record.done.push_back(applied.done[index] ? 1 : 0);
    if (transaction.actions[index].before && kept.has(index)) record.bytes += transaction.actions[index].replaced_bytes;
  }
  return record;
}

/// Syncs the workspace, adds what was applied to `committed`, and removes the journal: in this order a crash at most
/// repeats a part.
Result<void> finish(const RootDir& session, RealTree& tree, const Transaction& transaction, Committed& committed,
                    const KeptCommit* kept, const Applier& applier, const Applied& applied) {
  tree.forget();
  std::optional<Committed> left_there;
  if (kept != nullptr) {
    auto loaded = Committed::load(kept->directory());
    if (!loaded) return fail(loaded.error());
    left_there = std::move(*loaded);
  }
  for (std::size_t index = 0; index < transaction.actions.size(); ++index) {
    const Action& action = transaction.actions[index];
    if (!applied.done[index]) continue;
    const auto left = tree.look(action.path);
    // Never what the host put there, or changed, since it was applied.
    if (!left || !*left || !applier.isPlaced(index, **left)) continue;
    if (left_there) left_there->add(action.path, **left);
    // After a merge the session still has its own version: committing that later is a conflict again.
    if (!action.merged) committed.add(action.path, **left, action.sha256);
  }
  for (const KnownDirectory& directory : transaction.known_directories) {
    const auto left = tree.lookAtDirectory(directory.path);
    if (!left || left->info.device != directory.device || left->info.inode != directory.inode) continue;
    committed.add(directory.path + "/", left->info);
    if (left_there) left_there->add(directory.path + "/", left->info);
  }
  if (left_there && std::ranges::find(applied.done, true) != applied.done.end()) {
    const CommitRecord record = recordOf(tree.root(), transaction, *kept, applied);
    if (auto completed = kept->complete(record, *left_there); !completed) return completed;
    step("commit: kept");
  }
  if (auto synced = syncBoth(tree.root(), kept); !synced) return synced;
  step("commit: synced");
  if (auto saved = committed.save(); !saved) return saved;
  step("commit: recorded");
  if (transaction.undoing) {
    if (auto marked = markUndone(session); !marked) return marked;
  }
  if (auto removed = session.remove(kJournal); !removed) return removed;
  step("commit: journal removed");
  return {};
}

/// After undo(): what was moved and put back has a new change time, but was not changed by others.
void keepUnchanged(RealTree& tree, const Transaction& transaction, Committed& committed) {
  tree.forget();
  std::set<std::string> known;
  for (const KnownDirectory& directory : transaction.known_directories) {
    const auto there = tree.lookAtDirectory(directory.path);
    if (!there || there->info.device != directory.device || there->info.inode != directory.inode) continue;
    known.insert(directory.path);
    committed.add(directory.path + "/", there->info);
  }
  tree.forget();
  for (const Action& action : transaction.actions) {
    if (!action.before || !known.contains(directoryOf(action.path))) continue;
    const bool directory = action.before->type == sys::FileType::directory;
    // A file that was a conflict stays one. A directory that was one is never part of a transaction.
    if (!directory && action.before->changed_ns > transaction.since_ns) continue;
    const auto there = tree.look(action.path);
    if (!there || !*there || !action.before->matches(**there, true)) continue;
    committed.add(action.path + (directory ? "/" : ""), **there);
  }
  (void)committed.save();  // else they are conflicts
}

/// Says what a commit that failed left.
void explain(Error& failure, const std::vector<std::string>& left, const KeptCommit* kept) {
  if (!left.empty()) {
    failure.hint = "these paths of the real workspace stay changed: ";
    for (const std::string& path : left) failure.hint += (path == left.front() ? "" : ", ") + path;
  } else if (failure.hint.empty()) {
    failure.hint = "nothing was written; remove the cause and commit again";
  }
  if (kept != nullptr && !kept->isEmpty()) {
    failure.hint += "; what could not be put back is in " + kept->directory().knownAs() + "/objects";
  }
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
                         Committed& committed, const Keeping& keeping, bool all_or_nothing) {
  const KeptCommit* const kept = keeping.replaced ? keeping.kept : nullptr;
  Applied applied{std::vector<bool>(transaction.actions.size(), false), {}};
  if (transaction.actions.empty()) return applied;
  if (auto synced = staging.sync(); !synced) return fail(synced.error());
  step("commit: staged");
  if (auto written = writeJournal(session, transaction); !written) return fail(written.error());
  step("commit: journal written");
  Applier applier(tree, staging, transaction, committed, kept, false);
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
  if (!failure) {
    if (auto replaced = applier.keepReplaced(kept); !replaced) failure = replaced.error();
  }
  if (failure) {
    const std::vector<std::string> left = applier.undo();
    // What could not be put back is kept, also if what is replaced is not.
    if (auto rescued = applier.keepReplaced(keeping.kept); !rescued) return fail(rescued.error());
    applier.removeTemporaries();
    keepUnchanged(tree, transaction, committed);
    explain(*failure, left, keeping.kept);
    (void)session.remove(kJournal);
    return fail(*failure);
  }
  applier.removeTemporaries();
  if (auto finished = finish(session, tree, transaction, committed, kept, applier, applied); !finished) {
    Error error = finished.error();
    error.hint = "the files are written, but that is not recorded yet: the next command on the session does it";
    return fail(std::move(error));
  }
  return applied;
}

namespace {

bool isWorkspaceOf(const Transaction& transaction, const RootDir& directory) {
  const auto expected = sys::FileIdentity::read(transaction.workspace);
  const auto found = sys::identityOf(directory.descriptor());
  return expected && found && sys::isSameFile(*expected, *found);
}

}  // namespace

bool isCommitPending(const RootDir& session) {
  struct stat status;
  return ::fstatat(session.descriptor(), kStagingName, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::optional<RecoveredCommit>> recoverCommit(const SessionPaths& paths, const RootDir& session,
                                                     const Result<RootDir>& real) {
  if (!isCommitPending(session)) return std::nullopt;
  auto journal = readJournal(session);
  if (!journal) return fail(journal.error());
  // Without its workspace there is nothing to finish.
  const bool gone = !real && (real.error().sys_errno == ENOENT || real.error().sys_errno == ENOTDIR);
  if (!real && !gone) return fail(real.error());
  if (!*journal || !real || !isWorkspaceOf(**journal, *real)) {
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
  std::optional<KeptCommit> kept;
  if (!(*journal)->kept.empty()) {
    const std::string& name = (*journal)->kept;
    auto opened = KeptCommit::open(paths, name);
    if (!opened && opened.error().sys_errno == ENOENT) {
      std::uint64_t bytes = 0;
      for (const Action& action : (*journal)->actions) bytes += action.replaced_bytes;
      opened = KeptCommit::create(paths, name.substr(0, name.find('/')), bytes);
    }
    if (!opened) return fail(opened.error());
    kept = std::move(*opened);
  }
  RealTree tree(*real);
  Applier applier(tree, *staging, **journal, *committed, kept ? &*kept : nullptr, true);
  Applied applied{std::vector<bool>((*journal)->actions.size(), false), {}};
  for (std::size_t index = 0; index < (*journal)->actions.size(); ++index) {
    auto done = applier.apply(index);
    if (!done) return fail(done.error());
    applied.done[index] = done->empty();
    if (!done->empty()) applied.conflicts.push_back({(*journal)->actions[index].path, *done});
  }
  tree.forget();
  const KeptCommit* const keeper = kept ? &*kept : nullptr;
  if (auto replaced = applier.keepReplaced(keeper); !replaced) return fail(replaced.error());
  applier.removeTemporaries();
  if (auto finished = finish(session, tree, **journal, *committed, keeper, applier, applied); !finished) {
    return fail(finished.error());
  }
  if (auto removed = Staging::remove(session, &*real); !removed) return fail(removed.error());
  return RecoveredCommit{(*journal)->actions.size(), std::move(applied.conflicts)};
}

}  // namespace caisson::session
