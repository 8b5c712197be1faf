// Room on disk for the changes of one run, where the kernel cannot keep them in memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

/// A private directory below CAISSON_HOME/runs, removed when this goes. A lock held on it dies with its holder, so what
/// a killed caisson left is recognised and removed by the next one that needs a store.
class RunStore {
 public:
  static Result<RunStore> create(const std::string& sandbox_id, const plan::Identity& identity);
  RunStore(RunStore&&) noexcept;
  RunStore& operator=(RunStore&&) = delete;
  ~RunStore();

  /// The directory the overlay's layers go into.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  RunStore(sys::RootDir runs, std::string name, sys::Fd lock, std::string path);

  std::optional<sys::RootDir> runs_;
  std::string name_;
  sys::Fd lock_;
  std::string path_;
};

/// Removes the stores whose holder has died; their names.
Result<std::vector<std::string>> removeAbandonedStores();

}  // namespace caisson::supervise
