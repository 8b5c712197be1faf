// Disk space for one run: the changes of an overlay, and size-limited directories on disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "supervise/disk/disk_directories.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

/// A private directory below CAISSON_HOME/runs, removed by the destructor. Its lock is released when the holder dies,
/// so the next caisson that needs a store recognises and removes leftovers of a killed one.
class RunStore {
 public:
  /// Whether the plan keeps anything on disk.
  static bool needed(const plan::Plan& plan);
  /// Makes the store and the plan's directories in it. Also removes the stores whose holder died.
  static Result<RunStore> create(const std::string& sandbox_id, const plan::Plan& plan);
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();  ///< removes the store

  /// The directory of the overlay's layers, which is the store itself; empty if the plan has no overlay on disk.
  [[nodiscard]] const std::string& layers() const { return layers_; }
  [[nodiscard]] const DiskDirectories& directories() const { return directories_; }

 private:
  RunStore(sys::RootDir runs, std::string name, sys::Fd lock);
  /// Makes the directories on disk, and gives the store to the sandbox's user if it holds the layers.
  Result<void> fill(const plan::Plan& plan);

  std::optional<sys::RootDir> runs_;
  std::string name_;
  sys::Fd lock_;
  std::string layers_;
  DiskDirectories directories_;
};

/// Removes the stores whose holder died; returns their names.
Result<std::vector<std::string>> removeAbandonedStores();

}  // namespace caisson::supervise
