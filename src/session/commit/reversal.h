// What an uncommit will do: the reverse of a commit, as far as the workspace is still as the commit left it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "caisson/session.h"
#include "session/commit/committed.h"
#include "session/commit/kept_commits.h"
#include "session/commit/real_tree.h"

namespace caisson::session {

/// Plans the reverse of a commit, from what the workspace has now.
class Reversal {
 public:
  /// `restored`: what an earlier uncommit put back, which met conflicts.
  Reversal(RealTree& real, const KeptCommit& kept, const CommitRecord& record, Committed& left,
           const std::set<std::string>& restored);

  void plan();

  struct Step {
    Action action;
    std::size_t kept = SIZE_MAX;  ///< the action of the commit whose kept object comes back
  };
  [[nodiscard]] std::vector<Step>& steps() { return steps_; }
  /// Reports a path of the plan as a conflict instead.
  void leaveOut(const std::string& path, const std::string& why);
  CommitReport report;

 private:
  static int rankOf(const Step& step) { return step.action.kind == ActionKind::remove ? 0 : 1; }

  void conflict(const std::string& path, std::string why);

  [[nodiscard]] bool isToDo(std::size_t index) const;

  /// Whether it is what the commit put there, not changed since.
  [[nodiscard]] bool isLeft(const std::string& path, const sys::FileInfo& there) const;

  void consider(const Action& done, std::size_t index);

  static ActionKind kindOf(sys::FileType type);

  /// Of a directory that the commit made in the place of something else, also everything in it.
  [[nodiscard]] bool isUnchanged(const Action& done, const sys::FileInfo& there) const;

  /// Whether a directory holds anything that the commit did not make.
  [[nodiscard]] bool hasOthers(const std::string& directory) const;

  [[nodiscard]] bool findOthers(const std::string& directory) const;

  void considerMode(const Action& done, const std::optional<sys::FileInfo>& there);

  void removeAdded(const Action& done, const sys::FileInfo& there);

  void add(Step step, ChangeKind kind, sys::FileType type);

  RealTree& real_;
  const KeptCommit& kept_;
  const CommitRecord& record_;
  Committed& left_;
  const std::set<std::string>& restored_;
  const bool again_;                                      ///< an earlier uncommit met conflicts
  std::unordered_map<std::string, std::size_t> by_path_;  ///< actions that were done
  mutable std::unordered_map<std::string, bool> others_;  ///< cache of hasOthers()
  std::vector<Step> steps_;
};

}  // namespace caisson::session
