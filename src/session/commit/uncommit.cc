#include "session/commit/uncommit.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/path_parts.h"
#include "session/commit/apply.h"
#include "session/commit/kept_copy.h"
#include "session/commit/recover.h"
#include "sys/file_identity.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

constexpr const char* kChangedSince = "it was changed since the commit";

/// Plans the reverse of a commit, from what the workspace has now.
class Reversal {
 public:
  Reversal(RealTree& real, const KeptCommit& kept, const CommitRecord& record, const Committed& left)
      : real_(real), kept_(kept), record_(record), left_(left) {
    for (std::size_t index = 0; index < record.done.size(); ++index) {
      if (record.done[index] != 0) by_path_[record.transaction.actions[index].path] = index;
    }
  }

  void plan() {
    const auto& actions = record_.transaction.actions;
    // Backwards: links, files, directories, deletions.
    for (std::size_t index = actions.size(); index-- > 0;) {
      if (record_.done[index] != 0) consider(actions[index], index);
    }
    // What comes back goes below directories that come back before it; what was added in a directory goes before it.
    std::ranges::stable_sort(steps_, [](const Step& a, const Step& b) { return rankOf(a) < rankOf(b); });
    std::ranges::sort(report.applied, [](const auto& a, const auto& b) { return a.path < b.path; });
  }

  struct Step {
    Action action;
    std::size_t kept = SIZE_MAX;  ///< the action of the commit whose kept object comes back
  };
  [[nodiscard]] std::vector<Step>& steps() { return steps_; }
  /// Reports a path of the plan as a conflict instead.
  void leaveOut(const std::string& path, const std::string& why) {
    std::erase_if(report.applied, [&](const ManifestEntry& entry) { return entry.path == path; });
    conflict(path, why);
  }
  CommitReport report;

 private:
  static int rankOf(const Step& step) { return step.action.kind == ActionKind::remove ? 0 : 1; }

  void conflict(const std::string& path, const std::string& why) { report.conflicts.push_back({path, why}); }

  [[nodiscard]] bool isLeft(const std::string& path, const FileInfo& there) const {
    return left_.isOurs(path, there) || (there.type == FileType::directory && left_.isOurs(path + "/", there));
  }

  void consider(const Action& done, std::size_t index) {
    const auto there = real_.look(done.path);
    if (!there) return conflict(done.path, there.error().message());
    if (done.kind == ActionKind::directory && done.before && done.before->type == FileType::directory) {
      return considerMode(done, *there);
    }
    if (done.kind != ActionKind::remove && (!*there || !isUnchanged(done, **there))) {
      if (!*there && !done.before) return;  // what it added is gone already
      return conflict(done.path, *there ? kChangedSince : "it was removed since the commit");
    }
    if (done.kind == ActionKind::remove && *there)
      return conflict(done.path, "something was made there since the commit");
    if (!done.before) return removeAdded(done, **there);
    if (!kept_.has(index)) return conflict(done.path, "what was there was not kept");
    Step step{.action = {.path = done.path, .restored = true}, .kept = index};
    if (*there) step.action.before = HostIdentity::of(**there);
    step.action.kind = kindOf(done.before->type);
    step.action.mode = done.before->mode;
    step.action.may_lead_out = true;
    add(std::move(step), *there ? ChangeKind::modified : ChangeKind::added, done.before->type);
  }

  static ActionKind kindOf(FileType type) {
    return type == FileType::directory ? ActionKind::directory
           : type == FileType::link    ? ActionKind::link
                                       : ActionKind::file;
  }

  /// Of a directory that the commit made in the place of something else, also everything in it.
  [[nodiscard]] bool isUnchanged(const Action& done, const FileInfo& there) const {
    if (!isLeft(done.path, there)) return false;
    return there.type != FileType::directory || !hasOthers(done.path);
  }

  /// Whether a directory holds anything that the commit did not make.
  [[nodiscard]] bool hasOthers(const std::string& directory) const {
    if (const auto found = others_.find(directory); found != others_.end()) return found->second;
    const bool others = findOthers(directory);
    others_.emplace(directory, others);
    return others;
  }

  [[nodiscard]] bool findOthers(const std::string& directory) const {
    const auto entries = real_.root().list(directory);
    if (!entries) return true;
    return std::ranges::any_of(*entries, [&](const sys::DirectoryEntry& entry) {
      const std::string below = directory + "/" + entry.name;
      const auto info = real_.root().stat(below);
      const auto made = by_path_.find(below);
      if (!info || made == by_path_.end() || !isLeft(below, *info)) return true;
      const Action& action = record_.transaction.actions[made->second];
      if (action.before) return true;
      return info->type == FileType::directory && hasOthers(below);
    });
  }

  void considerMode(const Action& done, const std::optional<FileInfo>& there) {
    if (!there || there->type != FileType::directory || there->inode != done.before->inode) {
      return conflict(done.path, "it is another directory there now");
    }
    if (there->mode == done.before->mode) return;
    if ((there->mode & 0777U) != (done.mode & 0777U)) return conflict(done.path, kChangedSince);
    Step step{.action = {.kind = ActionKind::directory, .path = done.path, .mode = done.before->mode}};
    step.action.before = HostIdentity::of(*there);
    add(std::move(step), ChangeKind::modified, FileType::directory);
  }

  void removeAdded(const Action& done, const FileInfo& there) {
    // With a directory goes everything in it.
    for (std::string above = directoryOf(done.path); !above.empty(); above = directoryOf(above)) {
      const auto made = by_path_.find(above);
      if (made == by_path_.end()) continue;
      const Action& directory = record_.transaction.actions[made->second];
      const auto info = real_.look(above);
      if (directory.kind != ActionKind::directory) continue;
      if (directory.before && directory.before->type == FileType::directory) continue;
      if (info && *info && isUnchanged(directory, **info)) return;
    }
    Step step{.action = {.kind = ActionKind::remove, .path = done.path}};
    step.action.before = HostIdentity::of(there);
    if (there.type == FileType::regular) step.action.replaced_bytes = there.size;
    add(std::move(step), ChangeKind::deleted, there.type);
  }

  void add(Step step, ChangeKind kind, FileType type) {
    ManifestEntry entry;
    entry.path = step.action.path;
    entry.kind = kind;
    entry.type = sys::name(type);
    entry.mode = step.action.mode & 0777U;
    report.applied.push_back(std::move(entry));
    steps_.push_back(std::move(step));
  }

  RealTree& real_;
  const KeptCommit& kept_;
  const CommitRecord& record_;
  const Committed& left_;
  std::unordered_map<std::string, std::size_t> by_path_;  ///< actions that were done
  mutable std::unordered_map<std::string, bool> others_;  ///< cache of hasOthers()
  std::vector<Step> steps_;
};

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
  return {};
}

Error nothingToUndo(const std::string& session) {
  return plainError(Stage::usage, "session uncommit", session, "there is no commit that can be undone",
                    "`caisson session info` lists the commits; what they replaced is kept for seven days");
}

/// The directory of the record, if it is the one of the commit.
Result<sys::RootDir> openWorkspace(const CommitRecord& record) {
  const auto identity = sys::FileIdentity::read(record.transaction.workspace).value_or(sys::FileIdentity());
  if (identity.empty()) {
    return fail(plainError(Stage::state, "session uncommit", record.workspace, "the record of the commit is damaged",
                           "the files are in the directory `replaced` of CAISSON_HOME"));
  }
  auto opened = sys::openKnown(record.workspace, identity, "move the directory back to its path");
  if (!opened) return fail(opened.error());
  return sys::RootDir::adopt(std::move(*opened), {.known_as = record.workspace});
}

/// Removes the staging directory, unless a journal says that the next uncommit has to finish this one.
class StagedCopies {
 public:
  StagedCopies(const sys::RootDir& directory, const sys::RootDir& real) : directory_(directory), real_(real) {}
  ~StagedCopies() {
    if (!directory_.stat(kJournal)) (void)Staging::remove(directory_, &real_);
  }
  StagedCopies(const StagedCopies&) = delete;
  StagedCopies& operator=(const StagedCopies&) = delete;

 private:
  const sys::RootDir& directory_;
  const sys::RootDir& real_;
};

/// What was there before the commit, as it was then.
FileInfo infoOf(const HostIdentity& identity) {
  FileInfo info;
  info.type = identity.type;
  info.device = identity.device;
  info.inode = identity.inode;
  info.size = identity.size;
  info.modified_ns = identity.modified_ns;
  info.changed_ns = identity.changed_ns;
  return info;
}

/// What comes back may be what an older commit, or the session, had left there: it counts as such again. Otherwise the
/// older commits could not be undone. Errors are ignored: then these paths are conflicts.
void keepOlderCommits(const SessionPaths& paths, const std::string& session, std::uint32_t number,
                      const CommitRecord& record, RealTree& tree, const Committed& put_back,
                      const std::vector<std::string>& directories) {
  const auto renew = [&](const sys::RootDir& where) {
    auto left = Committed::load(where);
    if (!left) return;
    for (std::size_t index = 0; index < record.done.size(); ++index) {
      const Action& action = record.transaction.actions[index];
      if (record.done[index] == 0 || !action.before || !left->isOurs(action.path, infoOf(*action.before))) continue;
      const auto now = tree.look(action.path);
      if (now && *now && put_back.isOurs(action.path, **now)) left->add(action.path, **now);
    }
    for (const std::string& directory : directories) {
      const auto now = tree.lookAtDirectory(directory);
      if (now && left->isSameObject(directory, now->info)) left->add(directory + "/", now->info);
    }
    (void)left->save();
  };
  tree.forget();
  for (std::uint32_t older = number; older-- > 1;) {
    if (const auto kept = KeptCommit::open(paths, session + "/" + std::to_string(older))) renew(kept->directory());
  }
  if (const auto own = paths.sessions().enter(session)) renew(*own);
}

Result<void> carryOutReversal(const SessionPaths& paths, const std::string& session, const KeptCommit& kept,
                              const CommitRecord& record, RealTree& tree, Reversal& reversal, Committed& left) {
  const sys::RootDir& directory = kept.directory();
  const StagedCopies cleanup(directory, tree.root());
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
      if (!staged) return staged;
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
  if (auto marked = markUndone(keeper->directory()); !marked) return marked;
  tree.forget();
  const auto applied = carryOut(directory, tree, *staging, transaction, left, {&*keeper}, false);
  keeper->removeIfEmpty(paths);
  if (!applied) return fail(applied.error());
  for (const NotCommitted& one : applied->conflicts) {
    reversal.leaveOut(one.path, one.reason);
  }
  std::ranges::sort(reversal.report.conflicts, {}, &NotCommitted::path);
  return {};
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

/// Finishes an uncommit that was interrupted; its report. Nothing if there was none, or it had written nothing.
Result<std::optional<CommitReport>> finishInterrupted(const SessionPaths& paths, const std::string& name) {
  const auto kept = KeptCommit::open(paths, name);
  if (!kept || !isCommitPending(kept->directory())) return std::nullopt;
  const auto record = kept->record();
  if (!record) return fail(record.error());
  if (!*record) return std::nullopt;
  const auto recovered = recoverCommit(paths, kept->directory(), openWorkspace(**record));
  if (!recovered) return fail(recovered.error());
  if (!*recovered && !kept->isUndone()) return std::nullopt;
  return finishedReport(**record, *recovered);
}

}  // namespace

Result<CommitReport> uncommit(const SessionPaths& paths, const std::string& session, bool dry_run) {
  const auto list = listKept(paths, session);
  if (!list) return fail(list.error());
  for (const ReplacedByCommit& one : *list) {
    auto finished = finishInterrupted(paths, session + "/" + std::to_string(one.number));
    if (!finished) return fail(finished.error());
    if (*finished) return std::move(**finished);
  }
  const auto newest = std::find_if(list->rbegin(), list->rend(), [](const auto& one) { return !one.undone; });
  if (newest == list->rend()) return fail(nothingToUndo(session));
  const auto kept = KeptCommit::open(paths, session + "/" + std::to_string(newest->number));
  if (!kept) return fail(kept.error());
  const auto record = kept->record();
  if (!record) return fail(record.error());
  const auto real = openWorkspace(**record);
  if (!real) return fail(real.error());
  const auto turn = lockWorkspace(*real);
  if (!turn) return fail(turn.error());
  if (kept->isUndone()) return fail(nothingToUndo(session));  // by another process meanwhile
  auto left = Committed::load(kept->directory());
  if (!left) return fail(left.error());
  RealTree tree(*real);
  Reversal reversal(tree, *kept, **record, *left);
  reversal.plan();
  std::ranges::sort(reversal.report.conflicts, {}, &NotCommitted::path);
  if (dry_run) return std::move(reversal.report);
  std::vector<std::string> unchanged;
  for (const KnownDirectory& directory : (*record)->transaction.known_directories) {
    const auto now = tree.lookAtDirectory(directory.path);
    if (now && left->isOurs(directory.path + "/", now->info)) unchanged.push_back(directory.path);
  }
  if (auto done = carryOutReversal(paths, session, *kept, **record, tree, reversal, *left); !done) {
    return fail(done.error());
  }
  keepOlderCommits(paths, session, newest->number, **record, tree, *left, unchanged);
  return std::move(reversal.report);
}

}  // namespace caisson::session
