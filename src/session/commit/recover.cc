#include "session/commit/recover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/path_parts.h"
#include "session/commit/apply.h"
#include "session/commit/directory_watch.h"
#include "session/layers/steps.h"
#include "sys/file_identity.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::RootDir;

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
    record.done.push_back(applied.done[index] ? kDone : kNotDone);
    if (transaction.actions[index].before && kept.has(index)) record.bytes += transaction.actions[index].replaced_bytes;
  }
  return record;
}

/// After an uncommit. `directory`: of what the commit kept.
Result<void> markReverted(const RootDir& directory, const Transaction& transaction, const Applied& applied) {
  if (!isPartial(directory) && applied.conflicts.empty()) return markUndone(directory);
  std::vector<std::string> paths;
  for (std::size_t index = 0; index < applied.done.size(); ++index) {
    if (applied.done[index]) paths.push_back(transaction.actions[index].path);
  }
  if (auto added = addRestored(directory, paths); !added) return added;
  return markPartial(directory, true);
}

/// Syncs the workspace, adds what was applied to `committed`, and removes the journal: in this order a crash at most
/// repeats a part.
Result<void> finish(const RootDir& session, RealTree& tree, const Transaction& transaction, Committed& committed,
                    const KeptCommit* kept, const Applier& applier, Applied& applied) {
  tree.forget();
  std::optional<Committed> left_there;
  if (kept != nullptr) {
    auto loaded = Committed::load(kept->directory());
    if (!loaded) return fail(loaded.error());
    left_there = std::move(*loaded);
  }
  const DirectoryWatch watch(tree, transaction.actions);
  const auto is_left = [&](std::size_t index) { return applier.isLeft(index, applied.done[index]); };
  const auto add = [&](const std::string& path, const sys::FileInfo& left) {
    committed.add(path, left);
    if (left_there) left_there->add(path, left);
  };
  for (std::size_t index = 0; index < transaction.actions.size(); ++index) {
    const Action& action = transaction.actions[index];
    if (!applied.done[index]) continue;
    const auto left = applier.lookAtPlaced(index);
    // Never what the host put there, or changed, since it was applied.
    if (!left || !applier.isPlaced(index, *left)) {
      // The host may have moved a directory above it, and move that back.
      if (left_there && applier.wasPlaced(index)) left_there->addFrom(applier.placements(), action.path);
      continue;
    }
    if (left_there) left_there->add(action.path, *left);
    // After a merge the session still has its own version: committing that later is a conflict again.
    if (!action.merged) committed.add(action.path, *left, action.sha256);
    if (action.kind != ActionKind::directory) continue;
    if (left_there) left_there->addHash(action.path + "/", applier.placements().hashOf(action.path + "/"));
    if (action.before && action.before->type == sys::FileType::directory) continue;
    if (const auto made = watch.endMade(action.path, is_left)) add(action.path + "/", *made);
  }
  for (const KnownDirectory& directory : transaction.known_directories) {
    const auto left = watch.end(directory, is_left);
    if (!left) continue;
    add(directory.path + "/", *left);
    applied.unchanged_directories.push_back(directory.path);
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
    if (auto marked = markReverted(session, transaction, applied); !marked) return marked;
  }
  if (auto removed = session.remove(kJournal); !removed) return removed;
  step("commit: journal removed");
  return {};
}

/// After undo(): what was moved and put back has a new change time, but was not changed by others.
void keepUnchanged(RealTree& tree, const Transaction& transaction, const Applier& applier, Committed& committed) {
  tree.forget();
  for (std::size_t index = 0; index < transaction.actions.size(); ++index) {
    const auto back = applier.putBack(index);
    if (!back) continue;
    const std::string& path = transaction.actions[index].path;
    committed.add(back->type == sys::FileType::directory ? path + "/" : path, *back);
  }
  const DirectoryWatch watch(tree, transaction.actions);
  const auto is_left = [&](std::size_t index) { return applier.isLeft(index, false); };
  for (const KnownDirectory& directory : transaction.known_directories) {
    if (const auto left = watch.end(directory, is_left)) committed.add(directory.path + "/", *left);
  }
  (void)committed.save();  // else they are conflicts
}

/// After keepReplaced(): what was moved out and could not be put back can be undone, whatever the host did to the path.
void countKept(const KeptCommit* kept, const Transaction& transaction, Applied& applied) {
  for (std::size_t index = 0; kept != nullptr && index < transaction.actions.size(); ++index) {
    if (transaction.actions[index].before && kept->has(index)) applied.done[index] = true;
  }
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

namespace {

std::string describeFinished(const char* what, std::size_t changes, const std::vector<NotCommitted>& conflicts) {
  std::string text = std::string(what) + " that was interrupted is finished: " + std::to_string(changes) + " changes";
  if (conflicts.empty()) return text;
  text += ", but these changed in the real workspace meanwhile and were left alone: ";
  for (const NotCommitted& one : conflicts) text += (&one == &conflicts.front() ? "" : ", ") + one.path;
  return text;
}

}  // namespace

std::string describeFinished(const RecoveredCommit& recovered) {
  return describeFinished("a commit", recovered.actions, recovered.conflicts);
}

std::string describeFinished(const CommitReport& undone) {
  return describeFinished("an uncommit", undone.applied.size(), undone.conflicts);
}

Result<Fd> lockWorkspace(const RootDir& real) {
  return lockDirectory(real, "another commit is under way, or a program has locked the directory; try again");
}

Result<Applied> carryOut(const RootDir& session, RealTree& tree, const Staging& staging, const Transaction& transaction,
                         Committed& committed, const Keeping& keeping, bool all_or_nothing) {
  const KeptCommit* const kept = keeping.replaced ? keeping.kept : nullptr;
  Applied applied{std::vector<bool>(transaction.actions.size(), false), {}};
  if (transaction.actions.empty()) return applied;
  if (auto synced = staging.sync(); !synced) return fail(synced.error());
  step("commit: staged");
  if (auto removed = session.remove(kPlaced); !removed) return fail(removed.error());
  auto placements = Committed::load(session, kPlaced);
  if (!placements) return fail(placements.error());
  if (auto written = writeJournal(session, transaction); !written) return fail(written.error());
  step("commit: journal written");
  Applier applier(tree, staging, transaction, committed, *placements, kept, false);
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
  if (!failure) countKept(kept, transaction, applied);
  if (failure) {
    const std::vector<std::string> left = applier.undo();
    // What could not be put back is kept, also if what is replaced is not.
    if (auto rescued = applier.keepReplaced(keeping.kept); !rescued) return fail(rescued.error());
    applier.removeTemporaries();
    keepUnchanged(tree, transaction, applier, committed);
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
  return ::fstatat(session.descriptor(), kStagingName, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
         ::fstatat(session.descriptor(), kUndoing, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

namespace {

Result<KeptCommit> openKept(const SessionPaths& paths, const Transaction& transaction) {
  auto opened = KeptCommit::open(paths, transaction.kept);
  if (opened || opened.error().sys_errno != ENOENT) return opened;
  std::uint64_t bytes = 0;
  for (const Action& action : transaction.actions) bytes += action.replaced_bytes;
  // Under the same name: this may be interrupted, too.
  return KeptCommit::make(paths, transaction.kept, bytes);
}

/// Sets the commit aside, and the error that reports it.
Error setAsideBecause(const SessionPaths& paths, const InterruptedCommit& commit, const Transaction& transaction,
                      const std::string& why) {
  const auto place = setAside(paths, commit, transaction.kept, JournalState::usable);
  if (!place) return place.error();
  return plainError(Stage::state, "session commit", commit.session,
                    "a commit was interrupted and cannot be finished: " + why,
                    "it is kept in " + *place + ": `caisson session uncommit` finishes and undoes it once that works");
}

/// Applies the transaction again, from where it was interrupted.
Result<RecoveredCommit> applyAgain(const SessionPaths& paths, const RootDir& session, const RootDir& real,
                                   const Staging& staging, const Transaction& transaction) {
  auto committed = Committed::load(session);
  if (!committed) return fail(committed.error());
  auto placements = Committed::load(session, kPlaced);
  if (!placements) return fail(placements.error());
  std::optional<KeptCommit> kept;
  if (!transaction.kept.empty()) {
    auto opened = openKept(paths, transaction);
    if (!opened) return fail(opened.error());
    kept = std::move(*opened);
    // Else the next uncommit would take what this one replaces for a commit.
    auto marked = transaction.undoing ? markUndone(kept->directory()) : Result<void>();
    if (!marked) return fail(marked.error());
  }
  const KeptCommit* const keeper = kept ? &*kept : nullptr;
  RealTree tree(real);
  Applier applier(tree, staging, transaction, *committed, *placements, keeper, true);
  Applied applied{std::vector<bool>(transaction.actions.size(), false), {}};
  for (std::size_t index = 0; index < transaction.actions.size(); ++index) {
    auto done = applier.apply(index);
    if (!done) return fail(done.error());
    // What the host changed since it was put in place is undone no more, and named again by an uncommit.
    applied.done[index] = done->empty() || (!transaction.undoing && applier.wasPlaced(index));
    if (!done->empty()) applied.conflicts.push_back({transaction.actions[index].path, *done});
  }
  tree.forget();
  if (auto replaced = applier.keepReplaced(keeper); !replaced) return fail(replaced.error());
  countKept(keeper, transaction, applied);
  applier.removeTemporaries();
  if (auto finished = finish(session, tree, transaction, *committed, keeper, applier, applied); !finished) {
    return fail(finished.error());
  }
  return RecoveredCommit{transaction.actions.size(), transaction.undoing, std::move(applied.conflicts)};
}

}  // namespace

Result<std::optional<RecoveredCommit>> recoverCommit(const SessionPaths& paths, const InterruptedCommit& commit,
                                                     const Result<RootDir>& real) {
  const RootDir& session = commit.directory;
  if (!isCommitPending(session)) return std::nullopt;
  const bool is_set_aside = isSetAside(session);
  const auto rescue = [&]() -> Result<void> {
    if (is_set_aside) return {};
    auto place = setAside(paths, commit, {}, JournalState::damaged);
    return place ? Result<void>() : fail(place.error());
  };
  auto journal = readJournal(session, rescue);
  if (!journal) return fail(journal.error());
  if (!*journal) {
    if (is_set_aside) return std::nullopt;  // its journal was damaged
    // A commit or an uncommit that is under way holds it.
    const auto turn = real ? lockWorkspace(*real) : Result<Fd>(Fd());
    if (!turn) return fail(turn.error());
    if (auto removed = Staging::remove(session, real ? &*real : nullptr); !removed) return fail(removed.error());
    return std::nullopt;
  }
  if (!real) return fail(real.error());
  const Transaction& transaction = **journal;
  if (!isWorkspaceOf(transaction, *real)) {
    const std::string why = real->knownAs() + " is not the directory that it was changing";
    if (!is_set_aside) return fail(setAsideBecause(paths, commit, transaction, why));
    return fail(withCode(
        plainError(Stage::state, "session uncommit", commit.session,
                   "a commit was interrupted and cannot be finished: " + why, "move that directory back to its path"),
        ErrorCode::directory_replaced));
  }
  const auto turn = lockWorkspace(*real);
  if (!turn) return fail(turn.error());
  auto staging = Staging::open(session, *real);
  if (!staging && staging.error().sys_errno == ENOENT && !is_set_aside && !transaction.undoing) {
    return fail(setAsideBecause(paths, commit, transaction, "the files that it staged are gone"));
  }
  if (!staging) return fail(staging.error());
  auto recovered = applyAgain(paths, session, *real, *staging, transaction);
  if (!recovered) return fail(recovered.error());
  if (is_set_aside) {
    if (auto forgotten = forgetSetAside(session); !forgotten) return fail(forgotten.error());
  }
  if (auto removed = Staging::remove(session, &*real); !removed) return fail(removed.error());
  return std::move(*recovered);
}

Result<void> setAsideUnfinished(const SessionPaths& paths, const InterruptedCommit& commit) {
  if (!isCommitPending(commit.directory) || !commit.directory.stat(kJournal)) return {};
  std::string kept;
  const auto rescue = [&]() -> Result<void> {
    auto place = setAside(paths, commit, {}, JournalState::damaged);
    return place ? Result<void>() : fail(place.error());
  };
  if (const auto journal = readJournal(commit.directory, rescue); journal && *journal) kept = (*journal)->kept;
  if (!isCommitPending(commit.directory)) return {};  // it was damaged
  const auto place = setAside(paths, commit, kept, JournalState::usable);
  return place ? Result<void>() : fail(place.error());
}

bool isInterruptedIn(const RootDir& session, const sys::FileIdentity& workspace) {
  const auto leave = [&]() -> Result<void> {
    return fail(plainError(Stage::state, "session commit", kJournal, "it is damaged"));
  };
  const auto journal = readJournal(session, leave);
  if (!journal || !*journal) return false;
  const auto expected = sys::FileIdentity::read((*journal)->workspace);
  return expected && sys::isSameFile(*expected, workspace);
}

}  // namespace caisson::session
