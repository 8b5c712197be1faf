// Sandboxes that write to the same directories of the host know of each other.
//
// After a run that wrote to a workspace directly, files that the host would execute are moved away, unless they were
// there before. For a second run beside it, what the first one just made was there before, too. So each writer stores
// on the disk what was there when it began, and by what it judged that. To a writer, only that was there before which
// is so for all that wrote at the same time, in the same directory, above it or below it, and that would have found it.
//
// The records are below openTreeState(), one file each, which its owner keeps locked. A record outlives the owner if it
// is killed: the next run finds it and completes the check. It also outlives a writer that ended while others
// were writing, until those have ended.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "host/judged_files.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/file_identity.h"
#include "sys/root_dir.h"

namespace caisson::host {

using ProtectedFile = plan::WorkspaceScan::Protected;

class TreeWriter {
 public:
  /// Registers a writer of this open directory. Must precede the search of it: what a writer that begins later makes
  /// cannot be in the result without that writer being known.
  static Result<std::shared_ptr<TreeWriter>> begin(int tree, const std::string& path);
  /// Removes the record of a writer whose program never started.
  ~TreeWriter();
  TreeWriter(const TreeWriter&) = delete;
  TreeWriter& operator=(const TreeWriter&) = delete;

  /// What the search of the tree went by. Call before the next functions.
  void setJudgement(TreeJudgement judgement) { judgement_ = std::move(judgement); }
  /// Drops what another writer made: it need not be protected, and the check after that run may remove it at any time.
  /// Drops nothing if the records cannot be read.
  void dropNew(std::vector<ProtectedFile>& found) const;
  /// Stores what exists, before the program starts.
  Result<void> store(const plan::GuardedTree& tree);
  /// The sandbox's first process: while it lives, the program may still write.
  Result<void> setInit(pid_t init);
  /// Which of these were there before this writer and all beside it. On an error this is unknown.
  [[nodiscard]] Result<std::vector<ProtectedFile>> before() const;
  /// The check is done, or another writer has to do it again.
  void end();

 private:
  TreeWriter() = default;
  /// Keeps of `files` those that were there before all writers beside this one.
  Result<void> keepOld(std::vector<ProtectedFile>& files) const;

  sys::Fd file_;
  std::string name_;
  std::vector<ProtectedFile> before_;
  TreeJudgement judgement_;
  std::set<std::string> ended_earlier_;  ///< records that do not count: their writers ended before this one began
  bool stored_ = false, ended_ = false;
};

/// A writer that was killed before it could check what its program made.
struct KilledWriter {
  sys::Fd file;  ///< locked
  std::string name;
  std::string path;
  sys::FileIdentity tree;
  std::vector<ProtectedFile> before;
  std::vector<std::string> patterns;
  std::vector<plan::CalledFile> called;
  std::vector<plan::GitDirectory> git_directories;
};

/// Those whose processes are all gone, locked, so that no other process completes them at the same time. Cheap
/// without records.
std::vector<KilledWriter> killedWriters();
/// Removes the record: the check is complete, or the directory does not exist any more.
void forgetWriter(const KilledWriter& writer);

}  // namespace caisson::host
