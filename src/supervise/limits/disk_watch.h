// Disk limits where the kernel enforces none (class `watched`): trees on disk that a payload writes to.
//
// Data written between two polls is the overshoot. A poll is cheap while nothing grows: it queries free space, and sums
// up the tree only if that fell noticeably, or from time to time. RLIMIT_FSIZE limits single files. There is also a
// floor: some space and some inodes always stay free for the host.
//
// A walk lasts at most kWalkTime per tree. What it could not see (closed directories, a huge tree) a helper measures in
// the background; until its report comes, what the file system lost since the last complete size counts as written.
// Before that ends a run, the payload is stopped and a report awaited for a short time.
// While a walk is due because the disk lost more than the limit leaves, the payload is stopped if the walk is long.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/limits/closed_tree.h"
#include "supervise/limits/tree_size.h"
#include "supervise/processes/process_tree.h"
#include "sys/fd.h"

namespace caisson::supervise {

class DiskWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// Construct before the launch: data written from now on counts.
  explicit DiskWatch(const plan::DiskQuota& quota);
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  /// The overlay's upper directory, which counts completely. Ignored unless DiskQuota::upper is set.
  void addUpper(int directory);
  /// The directories of DiskQuota::directories, in that order.
  void addDirectories(const std::vector<sys::Fd>& descriptors);
  /// Shares what is known of trees that this process cannot read with the watches before and after this one. It must
  /// outlive this.
  void useClosedSizes(ClosedSizes& sizes) { closed_ = &sizes; }
  /// As ClosedSizes::useNamespace, for what only this watch knows.
  void useNamespace(sys::Fd sandbox) { own_closed_.useNamespace(std::move(sandbox)); }

  /// When the trees were last summed up, and what that cost.
  struct Pace {
    Clock::time_point walked{};
    Clock::duration cost{};
  };
  /// Shares the pace with the watches before and after this one: each would begin with a walk. It must outlive this.
  void usePace(Pace& pace) { pace_ = &pace; }

  /// Whether there is anything to poll.
  [[nodiscard]] bool active() const { return !trees_.empty(); }
  struct Exceeded {
    std::string reason;
    std::string directory;  ///< the size-limited directory, if the limit is one's own
  };
  /// Polls. Returns the exceeded limit, if any: the run must end.
  std::optional<Exceeded> look(Clock::time_point now, const ProcessTree& processes);

  /// The time until the next poll: short while a limit is near, and while the last poll found less free space than the
  /// one before.
  [[nodiscard]] std::chrono::milliseconds pause() const;
  /// What counts against the total quota, as of the last walk.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t inodes() const { return inodes_; }
  /// How long the last look() measured trees.
  [[nodiscard]] Clock::duration lastWalk() const { return last_walk_; }
  struct Fill {
    const plan::DirectoryQuota* quota;
    std::uint64_t bytes = 0, inodes = 0;
  };
  /// What the last walk found in the size-limited directories.
  [[nodiscard]] std::vector<Fill> directories() const;
  /// Measures the size-limited directories now, each for at most kWalkTime.
  std::vector<Fill> measureDirectories();
  /// At the end: measures caches that may have changed since the last walk, and returns all size-limited directories,
  /// as directories() does. Waits for each cache's helper at most `timeout`; one whose size is not known then counts as
  /// full.
  std::vector<Fill> measureCaches(std::chrono::milliseconds timeout);

 private:
  struct Tree {
    sys::Fd fd;
    std::optional<timespec> since;         ///< only what was written since then counts
    std::optional<std::size_t> directory;  ///< index in DiskQuota::directories
    std::uint64_t free_at_start = 0, floor = 0, free = 0;
    std::uint64_t inodes_at_start = 0, inode_floor = 0, free_inodes = 0;
    std::uint64_t bytes = 0, inodes = 0;                      ///< as last measured
    std::uint64_t estimated_bytes = 0, estimated_inodes = 0;  ///< the part of them that is only estimated
    std::uint64_t free_at_walk = 0, free_inodes_at_walk = 0;
    bool hidden = false, walked = false;
  };
  void add(sys::Fd fd, const std::optional<timespec>& since, std::optional<std::size_t> directory = {});
  /// Whether the tree counts against the total quota.
  [[nodiscard]] bool counts(const Tree& tree) const {
    return !tree.directory || (quota_.total_has_directories && !quota_.directories[*tree.directory].cache);
  }
  /// How many bytes may be written until the first limit is reached.
  [[nodiscard]] std::uint64_t bytesLeft() const;
  /// The shortest time in which a fast disk could reach a limit; at most a second.
  [[nodiscard]] std::chrono::milliseconds timeLeft() const;
  /// Whether the quota limits neither bytes nor single directories.
  [[nodiscard]] bool limitsInodesOnly() const;
  /// Adds files that are deleted but open to the last walk's sum, at most `missing` bytes: what the disk lost and the
  /// trees do not explain. Others write there too, and a payload may hold files open that it did not write.
  void addDeleted(const std::vector<DeletedFile>& files, std::uint64_t missing);
  /// The limit that the last walk found exceeded.
  [[nodiscard]] std::optional<Exceeded> findExceeded() const;
  /// The limits at which a walk of the tree may stop; without a deadline.
  [[nodiscard]] TreeBounds boundsOf(const Tree& tree) const;
  /// Walks the tree for at most kWalkTime. For what it could not see, adds an estimate and requests a helper.
  void measure(Tree& tree);
  [[nodiscard]] std::uint64_t grownSinceWalk() const { return grown_ - std::min(grown_, grown_at_walk_); }
  /// The disk lost more than the limit left at the last walk.
  [[nodiscard]] bool couldExceed() const;
  /// Whether to walk the trees now. `changed`: free space or inodes changed since the last walk.
  [[nodiscard]] bool worthAWalk(Clock::time_point now, bool changed) const;
  /// Measures and sums up the trees, and files that are deleted but open. May stop the payload meanwhile.
  void walk(Clock::time_point now, const ProcessTree& processes);
  /// Sets bytes_ and inodes_ from the last measurements.
  void sumUp();
  /// Other programs may have written what the file system lost: waits for helpers, at most kConfirmTime for each tree.
  /// What they could not measure in that time stays estimated.
  void confirmEstimates();

  plan::DiskQuota quota_;
  ClosedSizes own_closed_;
  ClosedSizes* closed_ = &own_closed_;
  timespec start_{};
  std::vector<Tree> trees_;
  std::uint64_t bytes_ = 0, inodes_ = 0;
  std::uint64_t grown_ = 0, grown_at_walk_ = 0;  ///< decrease of free space since the start
  std::uint64_t inodes_gone_ = 0;                ///< decrease of free inodes since the start
  bool counts_inodes_ = false;                   ///< all file systems of the trees count inodes
  bool changed_since_walk_ = false, growing_ = false;
  bool forced_ = false;  ///< the last walk was made earlier than its cost allows
  Clock::duration last_walk_{};
  Pace own_pace_;
  Pace* pace_ = &own_pace_;
};

}  // namespace caisson::supervise
