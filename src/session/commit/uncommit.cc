#include "session/commit/uncommit.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/path_parts.h"
#include "session/commit/apply.h"
#include "session/commit/directory_watch.h"
#include "session/commit/kept_copy.h"
#include "session/commit/recover.h"
#include "session/commit/restored.h"
#include "session/commit/reversal.h"
#include "session/commit/set_aside.h"
#include "session/store/metadata.h"
#include "sys/file_identity.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

/// Copies the kept object to staging: what is kept stays until the grace period ends, whatever happens now.
Result<void> stage(const Staging& staging, const KeptCommit& kept, std::size_t number, std::size_t index,
                   Action& action) {
  const std::string name = stagedName(index);
  if (auto copied = copyForKeeping(kept.objects(), std::to_string(number), staging.descriptor(), name, action.path);
      !copied) {
    return copied;
  }
  struct stat status;
  if (::fstatat(staging.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail(sysError(Stage::state, "stat", action.path, errno));
  }
  const FileInfo info = fileInfoOf(status);
  action.device = info.device;
  action.inode = info.inode;
  action.size = info.size;
  action.modified_ns = info.modified_ns;
  if (info.type != FileType::link) action.mode = info.mode;  // less if it cannot have its group
  return {};
}

/// Why one object cannot be copied; nothing if the error is not its own, for example a full disk.
const char* whyNotCopied(const Error& error) {
  switch (error.sys_errno) {
    case EACCES:
    case EPERM: return "what was there, or something in it, cannot be read";
    case ENAMETOOLONG: return "what was there has too many directories in each other";
    case ENODEV: return "what was there is a device, or holds one";
    default: return nullptr;
  }
}

Error nothingToUndo(const std::string& session, const std::vector<ReplacedByCommit>& commits) {
  for (const ReplacedByCommit& one : commits) {
    if (!one.interrupted) continue;
    return plainError(Stage::state, "session uncommit", session,
                      "a commit was interrupted, and its journal is damaged: it cannot be undone",
                      "what it had replaced is in " + one.location + ": copy it yourself");
  }
  return plainError(Stage::usage, "session uncommit", session, "there is no commit that can be undone",
                    "`caisson session info` lists the commits; what they replaced is kept for seven days");
}

/// The directories in which only the commit, and what followed on it, changed names, with the times of that.
std::vector<std::pair<std::string, std::int64_t>> unchangedDirectories(const CommitRecord& record, RealTree& tree,
                                                                       const Committed& left) {
  std::vector<std::pair<std::string, std::int64_t>> unchanged;
  for (const KnownDirectory& directory : record.transaction.known_directories) {
    const auto now = tree.lookAtDirectory(directory.path);
    if (now && left.isOurs(directory.path + "/", now->info))
      unchanged.emplace_back(directory.path, now->info.changed_ns);
  }
  return unchanged;
}

/// Where the session has its workspace now; empty if it was destroyed.
std::string currentWorkspace(const SessionPaths& paths, const std::string& session) {
  const auto directory = paths.sessions().enter(session);
  const auto metadata = directory ? readMetadata(*directory) : Result<Metadata>(fail(directory.error()));
  return metadata ? metadata->workspace : "";
}

/// The directory of the commit: at its path, or where the session was told that it was moved to.
Result<sys::RootDir> openWorkspace(const SessionPaths& paths, const std::string& session, const CommitRecord& record) {
  const auto identity = sys::FileIdentity::read(record.transaction.workspace).value_or(sys::FileIdentity());
  if (identity.empty()) {
    return fail(plainError(Stage::state, "session uncommit", record.workspace, "the record of the commit is damaged",
                           "the files are in the directory `replaced` of CAISSON_HOME"));
  }
  constexpr std::string_view kHint = "move the directory back to its path, or tell with `caisson session rebind`";
  std::string path = record.workspace;
  auto opened = sys::openKnown(path, identity, kHint);
  if (!opened) {
    if (const std::string now = currentWorkspace(paths, session); !now.empty() && now != path) {
      if (auto moved = sys::openKnown(now, identity, kHint)) {
        opened = std::move(moved);
        path = now;
      }
    }
  }
  if (!opened) return fail(opened.error());
  return sys::RootDir::adopt(std::move(*opened), {.known_as = path});
}

/// Notes in the session that it is undone, so that the next use of the session finishes it after a crash. Removes that
/// and the staging directory at the end, unless a journal says that it has to be finished.
class StagedCopies {
 public:
  StagedCopies(const SessionPaths& paths, const std::string& session, const KeptCommit& kept, const sys::RootDir& real)
      : session_(paths.sessions().enter(session)), directory_(kept.directory()), real_(real) {
    const std::string number = kept.name().substr(kept.name().find('/') + 1);
    if (session_) (void)session_->writeFileAtomic(kUndoing, number, 0600);  // else the next uncommit finishes it
  }
  ~StagedCopies() {
    if (directory_.stat(kJournal)) return;
    (void)Staging::remove(directory_, &real_);
    if (session_) (void)session_->remove(kUndoing);
  }
  StagedCopies(const StagedCopies&) = delete;
  StagedCopies& operator=(const StagedCopies&) = delete;

 private:
  const Result<sys::RootDir> session_;  ///< an error if it was destroyed
  const sys::RootDir& directory_;
  const sys::RootDir& real_;
};

/// Returns the directories in which the host changed nothing meanwhile.
Result<std::vector<std::string>> carryOutReversal(const SessionPaths& paths, const std::string& session,
                                                  const KeptCommit& kept, const CommitRecord& record, RealTree& tree,
                                                  Reversal& reversal, Committed& left) {
  const sys::RootDir& directory = kept.directory();
  const auto unchanged = unchangedDirectories(record, tree, left);
  const StagedCopies cleanup(paths, session, kept, tree.root());
  const auto staging = Staging::create(directory, tree.root());
  if (!staging) return fail(staging.error());
  Transaction transaction = record.transaction;
  transaction.actions.clear();
  transaction.known_directories.clear();
  const auto name = sys::unpredictableName();
  if (!name) return fail(sysError(Stage::state, "getrandom", "session uncommit", errno));
  transaction.id = name->substr(name->find('-') + 1);
  for (Reversal::Step& step : reversal.steps()) {
    const bool hidden = step.kept != SIZE_MAX && record.transaction.actions[step.kept].replaces_hidden;
    if (hidden && staging->isInWorkspace()) {
      reversal.leaveOut(step.action.path, "it may be hidden from sandboxes, which could see it on its way from " +
                                              directory.knownAs() + "/objects: copy it yourself");
      continue;
    }
    if (step.kept != SIZE_MAX) {
      auto staged = stage(*staging, kept, step.kept, transaction.actions.size(), step.action);
      const char* const why = staged ? nullptr : whyNotCopied(staged.error());
      if (!staged && why == nullptr) return fail(staged.error());
      if (!staged) {
        if (auto dropped = staging->drop(stagedName(transaction.actions.size())); !dropped)
          return fail(dropped.error());
        reversal.leaveOut(step.action.path, why);
        continue;
      }
    }
    transaction.actions.push_back(std::move(step.action));
  }
  std::uint64_t bytes = 0;
  for (const Action& action : transaction.actions) bytes += action.replaced_bytes;
  auto keeper = KeptCommit::create(paths, session, bytes);
  if (!keeper) return fail(keeper.error());
  transaction.kept = keeper->name();
  transaction.undoing = true;
  // It can be looked at, and is not undone by the next uncommit.
  if (auto marked = markUndone(keeper->directory()); !marked) return fail(marked.error());
  if (auto marked = markPartial(directory, !reversal.report.conflicts.empty()); !marked) return fail(marked.error());
  tree.forget();
  const DirectoryWatch watch(tree, transaction.actions);
  for (const auto& [path, changed_ns] : unchanged) {
    auto known = watch.begin(path, path.empty() && staging->isInWorkspace() ? 0 : changed_ns);
    if (known) transaction.known_directories.push_back(*std::move(known));
  }
  const auto applied = carryOut(directory, tree, *staging, transaction, left, {&*keeper}, false);
  if (!directory.stat(kJournal)) keeper->removeIfEmpty(paths);
  if (!applied) return fail(applied.error());
  for (const NotCommitted& one : applied->conflicts) {
    reversal.leaveOut(one.path, one.reason);
  }
  std::ranges::sort(reversal.report.conflicts, {}, &NotCommitted::path);
  return applied->unchanged_directories;
}

/// After an uncommit that was interrupted.
CommitReport finishedReport(const CommitRecord& record, const std::optional<RecoveredCommit>& found) {
  CommitReport report;
  if (found) report.conflicts = found->conflicts;
  for (std::size_t index = 0; index < record.done.size(); ++index) {
    ManifestEntry entry;
    entry.path = record.transaction.actions[index].path;
    const auto is_left = [&](const NotCommitted& one) { return one.path == entry.path; };
    if (record.done[index] != 0 && std::ranges::none_of(report.conflicts, is_left)) report.applied.push_back(entry);
  }
  return report;
}

/// Finishes a commit that was set aside, so that it can be undone.
Result<void> finishSetAside(const SessionPaths& paths, const std::string& session, const KeptCommit& kept) {
  const sys::RootDir& directory = kept.directory();
  if (!directory.stat(kJournal)) return {};  // it was damaged: only a person can use what is there
  const auto path = workspaceOfSetAside(directory);
  if (!path) return fail(path.error());
  auto opened = sys::openWithoutLinks(*path);
  if (!opened) {
    Error error = opened.error();
    error.hint = "a commit was interrupted, whose files are kept: move the directory back to its path, and try again";
    return fail(std::move(error));
  }
  const auto real = sys::RootDir::adopt(std::move(*opened), {.known_as = *path});
  const auto recovered = recoverCommit(paths, {directory, session, *path}, real);
  return recovered ? Result<void>() : fail(recovered.error());
}

/// Finishes a commit or an uncommit that was interrupted. The report of an uncommit; nothing if there was none, or it
/// had written nothing.
Result<std::optional<CommitReport>> finishInterrupted(const SessionPaths& paths, const std::string& session,
                                                      std::uint32_t number) {
  const auto kept = KeptCommit::open(paths, session + "/" + std::to_string(number));
  if (!kept || !isCommitPending(kept->directory())) return std::nullopt;
  if (isSetAside(kept->directory())) {
    auto finished = finishSetAside(paths, session, *kept);
    return finished ? Result<std::optional<CommitReport>>(std::nullopt) : fail(finished.error());
  }
  const auto record = kept->record();
  if (!record) return fail(record.error());
  if (!*record) return std::nullopt;
  const auto real = openWorkspace(paths, session, **record);
  const InterruptedCommit interrupted{kept->directory(), session, real ? real->knownAs() : (*record)->workspace};
  const auto recovered = recoverCommit(paths, interrupted, real);
  if (!recovered) return fail(recovered.error());
  if (!*recovered && !kept->isUndone()) return std::nullopt;
  if (const auto left = Committed::load(kept->directory()); left && real) {
    RealTree tree(*real);
    std::vector<std::string> unchanged;
    for (const auto& [path, changed_ns] : unchangedDirectories(**record, tree, *left)) unchanged.push_back(path);
    renewRecords(paths, *kept, **record, tree, *left, unchanged);
  }
  return finishedReport(**record, *recovered);
}

/// Undoes what is left of one commit.
Result<CommitReport> undoCommit(const SessionPaths& paths, const std::string& session, const KeptCommit& kept,
                                bool dry_run) {
  const auto record = kept.record();
  if (!record) return fail(record.error());
  if (!*record) return fail(nothingToUndo(session, {}));
  const auto real = openWorkspace(paths, session, **record);
  if (!real) return fail(real.error());
  const auto turn = lockWorkspace(*real);
  if (!turn) return fail(turn.error());
  if (kept.isUndone()) return fail(nothingToUndo(session, {}));  // by another process meanwhile
  auto left = Committed::load(kept.directory());
  if (!left) return fail(left.error());
  const auto restored = restoredPaths(kept.directory());
  if (!restored) return fail(restored.error());
  RealTree tree(*real);
  Reversal reversal(tree, kept, **record, *left, *restored);
  reversal.plan();
  if (dry_run) return std::move(reversal.report);
  if (reversal.steps().empty() && reversal.report.conflicts.empty()) {
    if (auto marked = markUndone(kept.directory()); !marked) return fail(marked.error());
    return std::move(reversal.report);
  }
  const auto unchanged = carryOutReversal(paths, session, kept, **record, tree, reversal, *left);
  if (!unchanged) return fail(unchanged.error());
  renewRecords(paths, kept, **record, tree, *left, *unchanged);
  return std::move(reversal.report);
}

/// Why the directory of a commit cannot be found; nothing if it is there, or another error has to be reported.
std::optional<Error> whyNotFound(const SessionPaths& paths, const std::string& session, const KeptCommit& kept) {
  const auto record = kept.record();
  if (!record || !*record) return std::nullopt;
  const auto real = openWorkspace(paths, session, **record);
  if (real) return std::nullopt;
  const int cause = real.error().sys_errno;
  const bool is_gone = real.error().code == ErrorCode::directory_replaced || cause == ENOENT || cause == ENOTDIR;
  return is_gone ? std::optional(real.error()) : std::nullopt;
}

/// Reports everything that a commit did as conflicts.
void addAll(std::vector<NotCommitted>& conflicts, const KeptCommit& kept, Error why) {
  why.hint.clear();
  const auto record = kept.record();
  if (!record || !*record) return;
  for (std::size_t index = 0; index < (*record)->done.size(); ++index) {
    if ((*record)->done[index] == kNotDone) continue;
    std::string reason = why.message();
    if (kept.has(index)) {
      reason +=
          "; what the commit replaced is kept as " + kept.directory().knownAs() + "/objects/" + std::to_string(index);
    }
    conflicts.push_back({(*record)->transaction.actions[index].path, std::move(reason)});
  }
}

}  // namespace

Result<std::optional<CommitReport>> finishUncommit(const SessionPaths& paths, const std::string& session) {
  const auto own = paths.sessions().enter(session);
  const auto text = own ? own->readFile(kUndoing, 32) : fail(own.error());
  if (!text) return std::nullopt;
  const auto turn = lockKept(paths, session);
  if (!turn) return fail(turn.error());
  std::uint32_t number = 0;
  std::from_chars(text->data(), text->data() + text->size(), number);
  auto finished = finishInterrupted(paths, session, number);
  if (finished) (void)own->remove(kUndoing);
  return finished;
}

Result<CommitReport> uncommit(const SessionPaths& paths, const std::string& session, bool dry_run) {
  const auto turn = lockKept(paths, session);
  if (!turn) return fail(turn.error());
  auto list = listKept(paths, session);
  if (!list) return fail(list.error());
  for (const ReplacedByCommit& one : *list) {
    auto finished = finishInterrupted(paths, session, one.number);
    if (!finished) return fail(finished.error());
    if (*finished) return std::move(**finished);
  }
  list = listKept(paths, session);  // with those that are finished now
  if (!list) return fail(list.error());
  CommitReport unresolved;
  std::optional<Error> not_found;
  bool undone = false;  // at least tried
  for (auto one = list->rbegin(); one != list->rend(); ++one) {
    if (one->undone || one->interrupted) continue;
    const auto kept = KeptCommit::open(paths, session + "/" + std::to_string(one->number));
    if (!kept) return fail(kept.error());
    if (auto why = whyNotFound(paths, session, *kept)) {
      addAll(unresolved.conflicts, *kept, *why);
      if (!not_found) not_found = std::move(why);
      continue;
    }
    undone = true;
    const bool again = isPartial(kept->directory());
    auto report = undoCommit(paths, session, *kept, dry_run);
    if (!report) return report;
    report->conflicts.insert(report->conflicts.begin(), unresolved.conflicts.begin(), unresolved.conflicts.end());
    if (!again || !report->applied.empty()) return report;
    unresolved = std::move(*report);  // its conflicts are still there: undo the one before
  }
  if (not_found && !undone) return fail(*std::move(not_found));
  if (unresolved.conflicts.empty()) return fail(nothingToUndo(session, *list));
  return unresolved;
}

}  // namespace caisson::session
