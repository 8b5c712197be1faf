// The limits of a whole session that must be polled: disk, and without a cgroup memory and processes.
//
// One object per busy period: from the first command of an idle session until nothing runs.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include "caisson/run.h"
#include "session/layers/layer_sizes.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "session/supervisor/live_sandbox.h"
#include "supervise/limits/limit_watch.h"
#include "supervise/limits/paused_tree.h"

namespace caisson::session {

class SessionLimits {
 public:
  using Clock = std::chrono::steady_clock;

  SessionLimits(const SessionPaths& paths, const Metadata& metadata, const LiveSandbox& sandbox);
  ~SessionLimits();
  SessionLimits(const SessionLimits&) = delete;
  SessionLimits& operator=(const SessionLimits&) = delete;

  /// Whether a plan has anything to poll: a limit on disk, memory or processes. With a cgroup, too, for its OOM kills.
  [[nodiscard]] static bool needed(const plan::Plan& plan);
  /// When to poll next; nothing if there is nothing to poll.
  [[nodiscard]] std::optional<Clock::time_point> next() const;
  /// Polls. Returns the exceeded limit, if any; the caller must then kill everything in the session.
  std::optional<Limit> look(Clock::time_point now);
  /// Call when a command ended. Returns `memory` if the OOM killer killed a process, else polls if free disk space
  /// shrank by a MiB or more since noteFreeSpace().
  std::optional<Limit> lookAtEnd();
  /// Measures whether the session has more on disk than its limits allow, which takes time.
  [[nodiscard]] bool isOverDiskLimit(Clock::time_point now);
  /// Remembers the free disk space for lookAtEnd(). Call before a command starts.
  void noteFreeSpace();
  /// Forks that the process limit denied so far. Without a cgroup they are not counted: 1 once the limit was reached.
  [[nodiscard]] std::uint64_t deniedForks() const;
  /// Without a cgroup that counts: whether there was no room for one more process while the process that has just
  /// exited was still there. Counts now: a program that is denied a process often exits before the next poll.
  [[nodiscard]] bool wasFullOfProcesses() const;
  /// The memory of System V objects, as pid 1 measured it, for the next poll.
  void setIpcBytes(std::uint64_t bytes);
  /// Whether setIpcBytes() needs to be called before the next poll.
  [[nodiscard]] bool wantsIpcBytes() const { return watch_ && watch_->wantsIpcBytes(); }
  /// Whether deleted files in frozen layers use more than a quarter of the quota: merging layers would free it.
  [[nodiscard]] bool muchHidden() const;
  /// Explains the exceeded limit; call after look() returned one.
  std::string reason();

 private:
  /// Creates the watch, with a disk quota for the upper layer of what frozen layers leave.
  void begin(Clock::time_point now);
  /// The size of a frozen layer with closed directories, once a helper has measured it; requests that if needed.
  std::optional<LayerSize> sizeOfClosed(int layer);
  /// Measures what deletions hide in frozen layers, for a bounded time. True if that is more than before.
  bool measureHidden(Clock::time_point now);
  /// Bytes that are free on the disk of the layers; 0 if that is not known.
  [[nodiscard]] std::uint64_t freeSpace() const;
  /// Processes of the session that the OOM killer killed so far; 0 without a cgroup.
  [[nodiscard]] std::uint64_t memoryKills() const;

  const SessionPaths& paths_;
  const Metadata& metadata_;
  const LiveSandbox& sandbox_;
  plan::Plan plan_;
  std::optional<plan::DiskQuota> whole_;  ///< of the session; the plan has what is left of it
  LayerSize hidden_;                      ///< in frozen layers, when last measured
  bool allow_emptying_ = false;           ///< a limit was reached: directories may have been over it before
  bool frozen_unknown_ = false;           ///< a frozen layer is being measured
  Clock::time_point next_measure_, next_frozen_;
  Clock::duration frozen_pause_ = std::chrono::milliseconds(100);
  Clock::time_point first_;
  timespec start_{};
  std::uint64_t free_before_ = 0, kills_before_ = 0;
  std::optional<supervise::LimitWatch> watch_;
  std::optional<supervise::PausedTree> held_;  ///< the payload, while a limit seems reached and no measurement is due
};

}  // namespace caisson::session
