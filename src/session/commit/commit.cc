// commit: chosen changes to the real workspace, as one transaction on a manifest.
//
//   plan     read each changed file once into staging; path, kind, mode, size, hash, link target make the manifest
//   approve  the digest of the manifest must be the one that was approved, if one was
//   apply    write the journal, put the staged objects in place, remove the journal
//
// Conflicts are found by the real file's change time, which no program can set: later than the session's beginning
// means that it was touched since, unless it is exactly what this session left there. The lower layer is the real tree
// itself, so comparing with that would show nothing.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/sha256.h"
#include "host/written_trees.h"
#include "session/client/session_context.h"
#include "session/commit/commit_planner.h"
#include "session/commit/kept_commits.h"
#include "session/commit/manifest.h"
#include "session/commit/recover.h"
#include "session/commit/uncommit.h"
#include "session/layers/layer_stack.h"
#include "session/layers/steps.h"
#include "session/store/rollback.h"
#include "session/store/workspace_root.h"
#include "session/tier/tier_files.h"
#include "sys/file_identity.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

Result<void> checkRequest(const Metadata& metadata, const CommitRequest& request) {
  if (metadata.workspace.empty()) {
    return fail(plainError(Stage::usage, "session commit", metadata.id, "the session began without a workspace",
                           "read its files with `caisson session read`"));
  }
  if (inLandlockTier(metadata.policy) && writesDirectly(metadata)) {
    return fail(plainError(Stage::usage, "session commit", metadata.id,
                           "the session writes to the workspace directly, so there is nothing to commit",
                           "without :rw a session has a copy of the workspace"));
  }
  Digest digest;
  if (!request.expect.empty() && !readHex(request.expect, digest)) {
    return fail(plainError(Stage::usage, "session commit", request.expect,
                           "not a digest: expected 64 hexadecimal digits",
                           "take it from `caisson session commit --dry-run`"));
  }
  return {};
}

/// The staging directory. Removes it at the end, unless a journal says that the commit has to be finished. In the
/// workspace, making and removing it changes the top directory: that is recorded, so that the next commit takes it for
/// no change of the host.
class OwnStaging {
 public:
  OwnStaging(const sys::RootDir& session, RealTree& tree, Committed& committed)
      : session_(session), tree_(tree), committed_(committed) {}
  ~OwnStaging() {
    if (session_.stat(kJournal)) return;
    const auto before = made_ ? tree_.lookAtDirectory("") : std::nullopt;
    const bool ours = before && (isSameTop(before->info) || committed_.isOurs("/", before->info));
    (void)Staging::remove(session_, &tree_.root());
    const auto after = ours ? tree_.lookAtDirectory("") : std::nullopt;
    if (!after) return;
    committed_.add("/", after->info);
    (void)committed_.save();
  }
  OwnStaging(const OwnStaging&) = delete;
  OwnStaging& operator=(const OwnStaging&) = delete;

  /// Makes the staging directory. The planner has looked at the top before.
  Result<void> make(CommitPlanner& planner) {
    auto made = Staging::create(session_, tree_.root());
    if (!made) return fail(made.error());
    staging_ = std::move(*made);
    planner.stageIn(*staging_);
    const auto top = planner.topIsKnown() && staging_->isInWorkspace() ? tree_.lookAtDirectory("") : std::nullopt;
    if (top) made_ = top->info;
    return {};
  }
  [[nodiscard]] const Staging& directory() const { return *staging_; }

 private:
  [[nodiscard]] bool isSameTop(const sys::FileInfo& now) const {
    return now.inode == made_->inode && now.changed_ns == made_->changed_ns;
  }

  const sys::RootDir& session_;
  RealTree& tree_;
  Committed& committed_;
  std::optional<Staging> staging_;
  std::optional<sys::FileInfo> made_;  ///< the top, with the new staging directory
};

/// Moves what met a conflict while it was applied from the report's applied entries to its conflicts.
void keepApplied(CommitReport& report, Applied applied) {
  const auto left = [&](const ManifestEntry& entry) {
    return std::any_of(applied.conflicts.begin(), applied.conflicts.end(),
                       [&](const NotCommitted& one) { return one.path == entry.path; });
  };
  if (!applied.conflicts.empty()) std::erase_if(report.applied, left);
  for (NotCommitted& one : applied.conflicts) report.conflicts.push_back(std::move(one));
  std::ranges::stable_sort(report.conflicts, {}, &NotCommitted::path);
}

Error otherDigest(const std::string& session, const std::string& digest) {
  return withCode(
      plainError(Stage::state, "session commit", session,
                 "the changes are not the ones that were approved: their digest is " + digest,
                 "review them again with `caisson session commit --dry-run " + session + "`; nothing was written"),
      ErrorCode::digest_mismatch);
}

/// Makes the place for what the commit replaces, if all that is kept is within the bound or the request says that it is
/// not kept.
Result<KeptCommit> keepFor(const SessionPaths& paths, const std::string& session, const CommitReport& report,
                           const CommitRequest& request) {
  auto made = KeptCommit::create(paths, session, request.discard ? 0 : report.replaced_bytes);
  if (!made || request.discard || report.replaced_bytes == 0) return made;
  const KeptData data = keptData(paths);  // with this commit
  if (data.total() <= data.limit) return made;
  made->removeIfEmpty(paths);
  return fail(plainError(
      Stage::state, "session commit", session,
      "it replaces or deletes " + std::to_string(report.replaced_bytes) +
          " bytes of the real workspace, and with them " + std::to_string(data.total()) + " of at most " +
          std::to_string(data.limit) + " bytes would be kept",
      "`caisson session info` lists what is kept; commit with --discard: then what it replaces is lost; nothing was "
      "written"));
}

/// Gives the transaction a name, and the identity of the directory that it changes. Records that this directory may get
/// links that a sandbox made.
Result<void> identify(Transaction& transaction, const sys::RootDir& workspace, const std::string& digest) {
  const auto name = sys::unpredictableName();
  if (!name) return fail(sysError(Stage::state, "getrandom", workspace.knownAs(), errno));
  const auto identity = sys::identityOf(workspace.descriptor());
  if (!identity) return fail(identity.error());
  transaction.id = name->substr(name->find('-') + 1);
  transaction.workspace = identity->text();
  transaction.digest = digest;
  return host::recordWrittenTree(workspace.descriptor(), workspace.knownAs());
}

/// Records what a commit removed, so that it does not count as removed by the host.
Result<void> recordRemovals(Committed& committed, const Transaction& transaction,
                            const std::vector<NotCommitted>& conflicts) {
  for (const Action& action : transaction.actions) {
    const bool removes = action.kind == ActionKind::remove;
    const bool had_directory = action.before && action.before->type == sys::FileType::directory;
    if (!removes && (!had_directory || action.kind == ActionKind::directory)) continue;
    if (std::ranges::find(conflicts, action.path, &NotCommitted::path) != conflicts.end()) continue;
    committed.addRemoved(removes ? action.path : action.path + "/");
  }
  return committed.save();
}

/// The transaction of an interrupted commit. Nothing if there is none that can be read.
std::optional<Transaction> interruptedTransaction(const sys::RootDir& session) {
  const auto leave = [&]() -> Result<void> {
    return fail(plainError(Stage::state, "session commit", kJournal, "it is damaged"));
  };
  auto journal = readJournal(session, leave);
  return journal ? *std::move(journal) : std::nullopt;
}

/// Keeps what the commit replaces, carries it out, and adds conflicts that it met to the report.
Result<void> applyPlan(const SessionPaths& paths, SessionContext& session, RealTree& tree, const Staging& staging,
                       CommitPlanner& planner, Committed& committed, const CommitRequest& request) {
  tree.forget();
  Transaction& transaction = planner.transaction();
  if (transaction.actions.empty()) return {};
  const auto kept = keepFor(paths, session.id(), planner.report(), request);
  if (!kept) return fail(kept.error());
  if (!request.discard) transaction.kept = kept->name();
  auto applied = carryOut(session.directory(), tree, staging, transaction, committed, {&*kept, !request.discard},
                          !request.expect.empty());
  if (!session.directory().stat(kJournal)) kept->removeIfEmpty(paths);
  if (!applied) return fail(applied.error());
  (void)recordRemovals(committed, transaction, applied->conflicts);  // else a path that is made again is a conflict
  keepApplied(planner.report(), std::move(*applied));
  return {};
}

}  // namespace

Result<void> SessionContext::finishInterruptedCommit() {
  if (rejected_journal_) return fail(*std::exchange(rejected_journal_, std::nullopt));
  if (!isCommitPending(directory_)) return {};
  auto undone = finishUncommit(store_->paths(), id());
  if (!undone) return fail(undone.error());
  if (*undone) {
    reportFinished("uncommit finished after an interruption", describeFinished(**undone));
    finished_uncommit_ = *std::move(*undone);
  }
  const bool had_journal = directory_.stat(kJournal).has_value();
  const auto transaction = interruptedTransaction(directory_);
  const InterruptedCommit interrupted{directory_, id(), metadata_.workspace};
  auto recovered = recoverCommit(store_->paths(), interrupted, openRealDirectory(metadata_));
  if (!recovered && had_journal && !directory_.stat(kJournal)) {
    // lock() ignores the error, and there is no journal any more that would cause it again.
    rejected_journal_ = recovered.error();
    reportFinished("interrupted commit kept aside", recovered.error().message());
  }
  if (!recovered) return fail(recovered.error());
  if (!*recovered) return {};
  if (auto committed = Committed::load(directory_); committed && transaction) {
    (void)recordRemovals(*committed, *transaction, (*recovered)->conflicts);
  }
  reportFinished("commit finished after an interruption", describeFinished(**recovered));
  return {};
}

void SessionContext::reportFinished(std::string_view state, std::string notice) {
  (void)note(state, notice);
  if (!store_->notify(notice)) restart_notice_ = std::move(notice);
}

Result<SessionContext::LayerUse> SessionContext::freezeForCommit(const CommitRequest& request) {
  if (inLandlockTier(metadata_.policy)) {  // no command starts while we hold the lock
    if (!isInUse(directory_, kUntilAskersAreGone)) return LayerUse::none;
    if (!request.stop || request.dry_run) return LayerUse::live;
    return fail(sysError(Stage::state, "session commit", id(), EBUSY,
                         "another process runs a command in the session: end that process first"));
  }
  if (request.stop && !request.dry_run) {
    if (auto settled = settle("session commit", WhenBusy::stop); !settled) return fail(settled.error());
    return LayerUse::none;
  }
  auto opened = SupervisorConnection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened || !(*opened)->welcome().sandbox_runs) return LayerUse::none;
  if (request.dry_run) return LayerUse::live;
  auto frozen = (*opened)->ask(MessageType::freeze, {}, "session commit", id(), {}, kSandboxTimeout);
  if (!frozen) return LayerUse::live;
  auto metadata = readMetadata(directory_);
  if (!metadata) return fail(metadata.error());
  metadata_ = std::move(*metadata);
  return LayerUse::frozen;
}

Result<void> SessionContext::rollBackBeforeApply() {
  const auto rolled_back = carryOutRollback(directory_, metadata_);
  if (!rolled_back) return fail(rolled_back.error());
  if (rolled_back->empty()) return {};
  return fail(plainError(Stage::state, "session commit", id(), "a process of the session tried to escape meanwhile",
                         "the workspace was rolled back; look at " + *rolled_back + " before you commit again"));
}

Result<CommitReport> SessionContext::commit(const CommitRequest& request) {
  if (auto checked = checkRequest(metadata_, request); !checked) return fail(checked.error());
  auto held = lock();
  if (!held) return fail(held.error());
  if (auto finished = finishInterruptedCommit(); !finished) return fail(finished.error());
  const auto use = freezeForCommit(request);
  if (!use) return fail(use.error());
  step("commit: frozen");
  auto roots = LayerRoots::open(store_->paths(), metadata_);
  if (!roots) return fail(roots.error());
  std::vector<std::string> current = metadata_.frozen;
  if (*use != LayerUse::frozen) current.insert(current.begin(), metadata_.upper);
  auto before = roots->stack({});
  auto now = roots->stack(current);
  if (!before) return fail(before.error());
  if (!now) return fail(now.error());
  auto changes = compareEntries(*before, *now, {.real_contents = false});
  if (!changes) return fail(changes.error());
  const auto turn = lockWorkspace(*roots->real());
  if (!turn) return fail(turn.error());
  auto committed = Committed::load(directory_);
  if (!committed) return fail(committed.error());
  RealTree tree(*roots->real());
  MergeBases bases(directory_, metadata_, *roots, *committed);
  CommitPlanner planner(metadata_, *before, *now, tree, *roots->hidden(), *committed,
                        DirectoryBaseline::load(directory_, metadata_), bases);
  OwnStaging staging(directory_, tree, *committed);
  if (!request.dry_run) {
    if (auto made = staging.make(planner); !made) return fail(made.error());
  }
  if (auto planned = planner.plan(*changes, request); !planned) {
    if (planned.error().code == ErrorCode::path_escapes) record_.pathRefused(id(), metadata_.policy, planned.error());
    return fail(planned.error());
  }
  CommitReport& report = planner.report();
  report.digest = manifestDigest(metadata_.workspace, report.applied);
  report.consistent = request.dry_run || *use != LayerUse::live;
  if (!request.expect.empty() && request.expect != report.digest) return fail(otherDigest(id(), report.digest));
  if (request.dry_run) return std::move(report);
  if (auto checked = rollBackBeforeApply(); !checked) return fail(checked.error());
  if (auto identified = identify(planner.transaction(), *roots->real(), report.digest); !identified) {
    return fail(identified.error());
  }
  if (auto noted = note("committing", metadata_.workspace + ", manifest " + report.digest); !noted) {
    return fail(noted.error());
  }
  if (auto applied = applyPlan(store_->paths(), *this, tree, staging.directory(), planner, *committed, request);
      !applied) {
    return fail(applied.error());
  }
  (void)note("committed", std::to_string(report.applied.size()) + " changes");
  if (inLandlockTier(metadata_.policy) && *use == LayerUse::none) {
    (void)advanceBase(store_->paths(), metadata_, report.applied);  // else they show in the next diff
  }
  return std::move(report);
}

Result<CommitReport> SessionContext::uncommit(bool dry_run) {
  finished_uncommit_.reset();
  auto held = lock();
  if (!held) return fail(held.error());
  if (auto finished = finishInterruptedCommit(); !finished) return fail(finished.error());
  if (finished_uncommit_) return *std::exchange(finished_uncommit_, std::nullopt);
  if (!dry_run) {
    if (auto noted = note("undoing a commit", metadata_.workspace); !noted) return fail(noted.error());
  }
  auto report = session::uncommit(store_->paths(), id(), dry_run);
  if (report && !dry_run) (void)note("commit undone", std::to_string(report->applied.size()) + " changes");
  return report;
}

}  // namespace caisson::session
