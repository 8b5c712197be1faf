// Directories of the host that a sandbox could write to, ever, or that got a commit: who names something in them later
// may find links that a program planted.
//
// One small file per directory in `trees` below the user's default data directory, so that it outlives reboots. Not
// below CAISSON_HOME, which may differ between two runs on the same tree; only if nothing can be written in the default
// place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/file_identity.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// The directory of caisson's state that does not depend on CAISSON_HOME: the user's default data directory, or
/// CAISSON_HOME if that cannot be written. Made if it is missing.
Result<sys::RootDir> openTreeState();
/// Where that may be, the preferred one first.
std::vector<std::string> treeStatePlaces();

/// Records that a sandbox, or a commit, can write to this open directory from now on, on the disk. Does nothing if it
/// is known.
Result<void> recordWrittenTree(int directory, const std::string& path);

/// The same for every directory that the payload of the plan can write to, and CAISSON_HOME, see host/state_homes.h.
/// Must precede its start.
Result<void> recordWrittenTrees(const plan::Plan& plan);

/// A directory that was recorded.
struct WrittenTreeRecord {
  std::string path;        ///< when it was recorded
  std::int64_t since = 0;  ///< nanoseconds of the wall clock, as in a file's change time
};

/// Looks up directories; opens the state once.
class WrittenTrees {
 public:
  WrittenTrees();
  /// Whether nothing was ever recorded.
  [[nodiscard]] bool empty() const { return states_.empty() && !problem_; }
  /// The record of an open directory itself. An error if the state cannot be read: then nothing is known.
  [[nodiscard]] Result<std::optional<WrittenTreeRecord>> find(int directory) const;

 private:
  std::vector<sys::RootDir> states_;
  std::optional<Error> problem_;  ///< there may be records, and they cannot be read
};

}  // namespace caisson::host
