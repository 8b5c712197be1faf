// Disk limits where the kernel holds none (class `watched` of SPEC F8): trees on disk that a payload writes to.
//
// What is written between two looks is the overshoot. A look is cheap while nothing grows: it asks the file system how
// much is free, and only when that has fallen noticeably, or at times, the tree is added up. Single files cannot grow
// beyond the limit at all (RLIMIT_FSIZE). Beside the limit itself there is a floor: the host keeps some room in any
// case.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/process_tree.h"
#include "sys/fd.h"

namespace caisson::supervise {

class DiskWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Before the launch: what is written from now on counts.
  explicit DiskWatch(const plan::DiskQuota& quota);

  /// The overlay's upper directory, all of which is the payload's.
  void addUpper(int directory);

  [[nodiscard]] bool active() const { return !trees_.empty(); }
  /// Why the run has to end, if it has to.
  std::optional<std::string> look(Clock::time_point now, const ProcessTree& processes);

  /// Whether the last look found less room than the one before.
  [[nodiscard]] bool growing() const { return growing_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t inodes() const { return inodes_; }

 private:
  struct Tree {
    sys::Fd fd;
    std::optional<timespec> since;
    std::uint64_t free_at_start = 0, floor = 0, free = 0, free_inodes = 0, inodes_at_start = 0;
  };
  void add(sys::Fd fd, const std::optional<timespec>& since);
  [[nodiscard]] bool worthAWalk(Clock::time_point now, bool changed) const;
  void walk(Clock::time_point now, const ProcessTree& processes);

  plan::DiskQuota quota_;
  timespec start_{};
  std::vector<Tree> trees_;
  std::uint64_t bytes_ = 0, inodes_ = 0;
  std::uint64_t grown_ = 0, grown_at_walk_ = 0;  ///< how much less is free than at the start
  std::uint64_t inodes_gone_ = 0;                ///< how many fewer are free than at the start
  bool counts_inodes_ = false;                   ///< every file system of the trees does
  bool changed_since_walk_ = false, growing_ = false;
  Clock::time_point walked_{};
  Clock::duration walk_cost_{};
};

}  // namespace caisson::supervise
