// Decides what a commit writes: which changes, in which form, and why the others are left. Reads the session's layers
// and the real workspace, and changes nothing but the staging directory.
//
// Each file of the session is read once, into staging (or only hashed in a dry run). What was read is what the manifest
// says and what is applied, whatever a process of the session does to the file afterwards.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "caisson/session.h"
#include "session/commit/closed_paths.h"
#include "session/commit/committed.h"
#include "session/commit/held_paths.h"
#include "session/commit/host_directories.h"
#include "session/commit/journal.h"
#include "session/commit/merge.h"
#include "session/commit/own_paths.h"
#include "session/commit/real_tree.h"
#include "session/commit/removed_directory.h"
#include "session/commit/resulting_tree.h"
#include "session/commit/staging.h"
#include "session/layers/layer_stack.h"
#include "session/store/metadata.h"

namespace caisson::session {

/// Normalises a path of a request: relative to the workspace, without `.` and empty parts. Absolute paths must be below
/// /workspace or below `workspace`, the directory on the host. An error for other absolute paths, `..` and "".
Result<std::string> normalCommitPath(std::string_view path, const std::string& workspace);

/// The permissions that a commit gives a new file: no setuid, setgid or sticky bit, and not writable by others.
inline constexpr mode_t kCommittedBits = 0755;

class CommitPlanner {
 public:
  /// `before`: what the session began with; `now`: the session's layers; `real`: the real workspace, and `hidden` what
  /// the session does not see of it. Looks at the workspace's top: a staging directory made there changes it.
  CommitPlanner(const Metadata& metadata, const LayerStack& before, const LayerStack& now, RealTree& real,
                HiddenHostFiles& hidden, const Committed& committed, DirectoryBaseline baseline, MergeBases& bases);

  /// Whether the top of the workspace is as the session knows it.
  [[nodiscard]] bool topIsKnown();
  /// Without this, it is a dry run.
  void stageIn(const Staging& staging);

  /// Decides on all changes; report() and transaction() then have the result. Files that cannot be read are left out
  /// and named in the report; a full disk is an error. Call once.
  Result<void> plan(const std::vector<StackChange>& changes, const CommitRequest& request);

  [[nodiscard]] CommitReport& report() { return report_; }
  [[nodiscard]] Transaction& transaction() { return transaction_; }

 private:
  struct Candidate {
    Change change;
    bool named = false;                  ///< the request names exactly this path
    std::string named_despite;           ///< why it would be held back if it were not named; empty: it would not
    LayerStack::Entry entry;             ///< what the session has
    std::optional<sys::FileInfo> there;  ///< what the real workspace has
    std::string target;                  ///< of a link
    std::string held;                    ///< a link: why it is held back
    std::optional<std::string> merged;   ///< the content to write instead of the session's
    RemovedDirectory removed;            ///< if a real directory is removed or replaced: what it holds
    std::string judged_sha256;           ///< a git index: of the content that whyIndexHeld() judged
    bool replaces_hidden = false;        ///< the real file may have been hidden from the session
    /// Access for group and others that the session's file gives and the real one does not. Not given unless the
    /// request names the path.
    mode_t withheld = 0;
  };

  enum class Resolution { none, ours, theirs, merge };
  struct Choice {
    Resolution how = Resolution::none;
    bool met = false;  ///< there was a conflict
  };

  /// Normalises the paths of the request; an error for one outside the workspace or in both `ours` and `theirs`.
  Result<void> readRequest(const CommitRequest& request);
  /// Whether the request includes this change. `named` is set if it does so by exactly this path, or if the change is a
  /// directory that leads to a chosen path.
  [[nodiscard]] bool isWanted(const Change& change, bool& named);
  /// Whether the change is a directory without which nothing in it can be written: the real workspace has none there,
  /// or one that its owner may not write in. Another one keeps its permissions.
  [[nodiscard]] bool leadsThere(const Change& change);
  /// Remembers the directories in which only this session changed names, as they are now.
  void watchDirectories();
  /// Adds a change to the candidates, or to the report's lists of what is left out.
  void consider(const StackChange& change);
  /// Looks at what the real workspace has. False: the change is done there already, or was reported.
  bool lookAtReal(Candidate& candidate);
  /// Marks the chosen paths that include `path` as having a change.
  void markMet(const std::string& path);
  /// Whether the request excludes the change: it is in an excluded directory, or would remove one.
  [[nodiscard]] bool isExcluded(const Change& change) const;
  /// Whether the policy keeps the change from being committed. Then it is held back for a model, whatever the request
  /// names, and otherwise unless it is named; `why` is set.
  bool isClosed(const Candidate& candidate, std::string& why) const;
  /// Why no request can have the change: it would write caisson's own configuration or state, or redirect it. Empty: it
  /// would not.
  [[nodiscard]] std::string whyNever(const Candidate& candidate) const;
  /// Whether the real workspace has the same object already: from an earlier commit, or because the same change was
  /// made there.
  bool isSame(const Candidate& candidate);
  /// The permissions that the commit writes: without what is withheld, and writable by others where the real file is.
  [[nodiscard]] static mode_t modeToWrite(const Candidate& candidate);
  [[nodiscard]] mode_t modeOfDirectory(const Candidate& candidate) const;
  /// Sets Candidate::withheld, or the reason for which the path had to be named.
  void limitMode(Candidate& candidate) const;
  /// Reports access that is withheld.
  void reportWithheld(const Candidate& candidate);
  /// Why the change is held back unless it is named: a protected file, a git directory, with ordinary_files_only an
  /// unusual name or kind of file. Empty: it is not.
  [[nodiscard]] std::string whyHeld(Candidate& candidate);
  /// The same for git's index: with new flags, git would not show what changes in some files. Sets `judged_sha256`.
  [[nodiscard]] std::string whyIndexHeld(Candidate& candidate);
  /// Finds the links of the real workspace, and those of the session that the request names.
  void findLinks(const std::vector<StackChange>& changes);
  /// Whether the commit removes a real directory with everything below, or puts a file or link in its place.
  [[nodiscard]] static bool removesDirectory(const Candidate& candidate);
  /// What a real directory holds that the commit would remove.
  [[nodiscard]] RemovedDirectory inspectRemoved(const std::string& path);
  /// Why the real file must be left alone: it changed since the session began, or was hidden from it. Empty: no
  /// conflict.
  [[nodiscard]] std::string conflict(const Candidate& candidate);
  /// The same where the real workspace has nothing at the path.
  [[nodiscard]] std::string conflictIfGone(const Candidate& candidate);
  /// How the request resolves a conflict at `path`: the longest chosen path that includes it decides.
  Resolution resolutionOf(const std::string& path);
  /// Whether the real file, or a part of it, was hidden from the session.
  [[nodiscard]] bool wasHidden(const std::string& path) const;
  /// Reports a conflict, or with `ours` that the real file stays.
  void leaveConflict(const std::string& path, std::string_view why);
  /// Resolves a conflict as the request says, or reports it. False: the change is left out, since it was reported or
  /// the merge found that the real file has it already.
  bool settle(Candidate& candidate, const std::string& why);
  /// Removes links that ResultingTree::whyHeld() rejects from the candidates, unless they are named.
  void holdLinks();
  /// Sets what a directory becomes. False: it is a conflict, since the attributes of the real one cannot be read.
  [[nodiscard]] bool planDirectory(const Candidate& candidate, Action& action);
  /// Stages a candidate and adds it to the transaction and the report.
  Result<void> accept(const Candidate& candidate);
  /// Notes the directories whose change by this action is the session's.
  void noteKnown(const Candidate& candidate, const Action& action);
  /// The access list and attributes of the real file that a file replaces.
  Result<HostAttributes> attributesToKeep(const Candidate& candidate);
  /// Of the file of the host that it replaces.
  static std::optional<HostOwner> ownerToKeep(const Candidate& candidate);
  void addToReport(const Candidate& candidate, const Action& action);
  /// Reads a file once, into staging, and sets the action's size, mode and hash. False: it could not be read, and is
  /// named in the report.
  Result<bool> readContent(const Candidate& candidate, const HostAttributes& attributes, Action& action);
  /// Whether the holes of a file are within what a commit reads of them; counts them.
  bool mayReadHoles(const sys::FileInfo& info);
  /// Whether names were made or removed in the real directory of `path` since the session began, other than by this
  /// session's commits, or it is another directory.
  bool parentChanged(const std::string& path);
  /// Why `path` does not lead to what the session saw there, or empty: a directory on the way is another one now.
  std::string whyElsewhere(const std::string& path);
  /// The same for a name that the commit adds, which may also be in a directory that the session and the host both
  /// made.
  std::string whyAddedElsewhere(const std::string& path);
  /// Whether the real object is as this session committed it. Where times are coarse, by its content.
  bool isOurs(const std::string& path, const sys::FileInfo& info);
  /// What the session has at `path`.
  LayerStack::Entry find(const std::string& path);
  /// The layers that show the directory; empty if the session has none of that name.
  const LayerStack::View& viewOf(const std::string& directory);
  /// Adds a path to one of the report's lists of what is left out.
  void leave(std::vector<NotCommitted>& list, const std::string& path, std::string_view why);

  std::string workspace_;  ///< on the host
  const LayerStack& before_;
  const LayerStack& now_;
  RealTree& real_;
  HiddenHostFiles& hidden_;
  const Committed& committed_;
  std::int64_t since_ns_;
  HostDirectories directories_there_;
  FileMerger merger_;
  const Staging* staging_ = nullptr;
  HeldPaths held_;
  ClosedPaths closed_;
  OwnPaths own_;
  bool by_model_ = false;  ///< CommitRequest::ordinary_files_only
  ResultingTree result_;
  std::uint64_t hole_bytes_ = kMaxHoleBytes;  ///< how many bytes of holes may still be read
  std::vector<std::string> chosen_;           ///< paths of the request; empty: everything
  std::vector<std::string> excluded_;         ///< folded paths of the request
  std::vector<bool> met_;                     ///< by chosen path: something changed there
  std::map<std::string, Choice> choices_;     ///< how to resolve conflicts at these paths and below them
  std::vector<Candidate> candidates_;
  std::unordered_set<std::string> directories_;              ///< that the commit makes
  std::unordered_set<std::string> held_directories_;         ///< new ones that are held back
  std::unordered_map<std::string, LayerStack::View> views_;  ///< cache of viewOf()
  std::unordered_set<std::string> known_;                    ///< Transaction::known_directories
  std::optional<std::int64_t> top_changed_ns_;               ///< after the staging directory was made in it
  CommitReport report_;
  Transaction transaction_;
};

}  // namespace caisson::session
