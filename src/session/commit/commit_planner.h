// Decides what a commit writes: which changes, in which form, and why the others are left. Reads the session's layers
// and the real workspace, and changes nothing but the staging directory.
//
// Each file of the session is read once, into staging (or only hashed in a dry run). What was read is what the manifest
// says and what is applied, whatever a process of the session does to the file afterwards.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "caisson/session.h"
#include "policy/rules/ordinary_files.h"
#include "policy/rules/protected_files.h"
#include "session/commit/committed.h"
#include "session/commit/journal.h"
#include "session/commit/merge.h"
#include "session/commit/real_tree.h"
#include "session/commit/resulting_tree.h"
#include "session/commit/staging.h"
#include "session/layers/layer_stack.h"
#include "session/store/metadata.h"

namespace caisson::session {

/// A path of a request, relative and without `.` and empty parts; an error when it is not below the workspace. Absolute
/// ones are below /workspace or below `workspace`, the directory on the host.
Result<std::string> normalCommitPath(std::string_view path, const std::string& workspace);

class CommitPlanner {
 public:
  /// `staging` null: a dry run.
  CommitPlanner(const Metadata& metadata, const LayerStack& now, RealTree& real, const Committed& committed,
                MergeBases& bases, const Staging* staging);

  /// Decides on everything that changed. Files that cannot be read are left out and named; a disk that is full is an
  /// error.
  Result<void> plan(const std::vector<StackChange>& changes, const CommitRequest& request);

  [[nodiscard]] CommitReport& report() { return report_; }
  [[nodiscard]] Transaction& transaction() { return transaction_; }

 private:
  struct Candidate {
    Change change;
    bool named = false;
    bool held_unless_named = false;
    LayerStack::Entry entry;
    std::optional<sys::FileInfo> there;
    std::string target;
    std::string held;                   ///< a link: why it would be held back
    std::optional<std::string> merged;  ///< the content to write instead of the session's
  };

  Result<void> readRequest(const CommitRequest& request);
  /// Whether the request has this change, and whether by its own name.
  [[nodiscard]] bool isWanted(const Change& change, bool& named) const;
  void consider(const StackChange& change);
  /// Notes which of the chosen paths have a change.
  void markMet(const std::string& path);
  /// Whether the real workspace has it already: from a commit that is repeated, or made there in the same way.
  bool isSame(const Candidate& candidate);
  [[nodiscard]] std::string whyHeld(const Candidate& candidate);
  [[nodiscard]] std::string conflict(const Candidate& candidate);
  /// Settles a conflict as the request says, or reports it. False: the change is left out.
  bool settle(Candidate& candidate, const std::string& why);
  void holdLinks();
  Result<void> accept(const Candidate& candidate);
  Result<bool> readContent(const Candidate& candidate, Action& action);
  /// Whether names were made or removed beside it since the session began, other than by this session's commits.
  bool parentChanged(const std::string& path);
  LayerStack::Entry find(const std::string& path);
  const LayerStack::View& viewOf(const std::string& directory);
  void leave(std::vector<NotCommitted>& list, const std::string& path, std::string_view why);

  std::string workspace_;  ///< on the host
  const LayerStack& now_;
  RealTree& real_;
  const Committed& committed_;
  FileMerger merger_;
  const Staging* staging_;
  policy::ProtectedFiles protected_;
  policy::OrdinaryFiles ordinary_;
  ResultingTree result_;
  RepositoryShapes shapes_;
  bool ordinary_only_ = false;
  std::vector<std::string> chosen_;
  std::vector<bool> met_;
  std::unordered_set<std::string> ours_, theirs_;
  std::vector<std::string> merge_;
  std::vector<Candidate> candidates_;
  std::unordered_set<std::string> directories_;  ///< that the commit makes
  std::unordered_map<std::string, LayerStack::View> views_;
  std::unordered_map<std::string, bool> parent_changed_;
  std::unordered_set<std::string> known_;
  CommitReport report_;
  Transaction transaction_;
};

/// The digest that an approval is bound to: of everything that the commit writes, and where.
std::string manifestDigest(const std::string& workspace, const std::vector<ManifestEntry>& manifest);

}  // namespace caisson::session
