// Disk space for the changes of one run, where the kernel cannot keep them in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

/// A private directory below CAISSON_HOME/runs, removed by the destructor. Its lock is released when the holder dies,
/// so the next caisson that needs a store recognises and removes leftovers of a killed one.
class RunStore {
 public:
  static Result<RunStore> create(const std::string& sandbox_id, const plan::Identity& identity);
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();

  /// The directory of the overlay's layers.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RunStore(sys::RootDir runs, std::string name, sys::Fd lock, std::string path);

  std::optional<sys::RootDir> runs_;
  std::string name_;
  sys::Fd lock_;
  std::string path_;
};

/// Removes the stores whose holder died; returns their names.
Result<std::vector<std::string>> removeAbandonedStores();

}  // namespace caisson::supervise
