// The limits of a whole session that have to be looked at: disk, and without a cgroup memory and processes.
//
// One object per busy period: from the first command of an idle session until nothing runs any more.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include "caisson/run.h"
#include "session/layers/layer_sizes.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "session/supervisor/launcher.h"
#include "session/supervisor/live_sandbox.h"
#include "supervise/limit_watch.h"

namespace caisson::session {

class SessionLimits {
 public:
  using Clock = std::chrono::steady_clock;

  SessionLimits(const SessionPaths& paths, const Metadata& metadata, const LiveSandbox& sandbox, Launcher& launcher);

  /// Whether a plan has anything to look at.
  [[nodiscard]] static bool needed(const plan::Plan& plan);
  /// When to look; nothing when there is nothing to look at.
  [[nodiscard]] std::optional<Clock::time_point> next() const;
  /// The limit that was exceeded, if one was: everything in the session has to end.
  std::optional<Limit> look(Clock::time_point now);
  /// When a command has ended: looks at once if much was written, or a process was killed for want of memory.
  std::optional<Limit> lookAtEnd();
  /// Before a command starts, for lookAtEnd().
  void noteFreeSpace();
  void setIpcBytes(std::uint64_t bytes);
  /// Whether pid 1 should be asked for that before the next look.
  [[nodiscard]] bool wantsIpcBytes() const { return watch_ && watch_->wantsIpcBytes(); }
  /// Deleted files take a large part of the quota: merging layers would free it.
  [[nodiscard]] bool muchHidden() const;
  /// Why the limit was exceeded, in words; call after look() returned one.
  std::string reason();

 private:
  void begin(Clock::time_point now);
  bool measureHidden(Clock::time_point now);
  [[nodiscard]] std::uint64_t freeSpace() const;
  [[nodiscard]] std::uint64_t memoryKills() const;

  const SessionPaths& paths_;
  const Metadata& metadata_;
  const LiveSandbox& sandbox_;
  Launcher& launcher_;
  plan::Plan plan_;
  std::optional<plan::DiskQuota> whole_;  ///< of the session; the plan's is what is left of it
  LayerSize hidden_;                      ///< in frozen layers, when it was measured last
  Clock::time_point next_measure_;
  Clock::time_point first_;
  timespec start_{};
  std::uint64_t free_before_ = 0, kills_before_ = 0;
  std::optional<supervise::LimitWatch> watch_;
};

}  // namespace caisson::session
