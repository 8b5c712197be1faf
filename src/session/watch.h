// The limits of a whole session that no kernel holds: disk, and without a cgroup memory and processes.
//
// Whoever runs a command in the foreground looks while it runs. For what lives on, be it a background command or
// something that a command left behind, an attendant looks until nothing runs any more. CPU time is a command's own
// limit; pid 1 holds it.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "caisson/run.h"
#include "session/connection.h"
#include "session/metadata.h"
#include "session/place.h"
#include "supervise/limit_watch.h"

namespace caisson::session {

class SessionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `limits` is any plan of the session; `whole` gives one with its steps when the first look is due, and `metadata`
  /// need not be complete before. Most commands have ended by then.
  SessionWatch(const Place& place, const sys::RootDir& directory, const Metadata& metadata, const plan::Plan& limits,
               std::function<Result<plan::Plan>()> whole);

  /// Notes how much is free on disk, for lookAtTheEnd(). Before the command starts.
  void noteFreeRoom();
  /// When to look; nothing when there is nothing to look at.
  [[nodiscard]] std::optional<Clock::time_point> next() const;
  /// Looks, and ends everything in the session when a limit is exceeded: that limit, once.
  std::optional<Limit> look(Clock::time_point now);
  /// A last look when a command has ended, if it may have written much between two looks.
  std::optional<Limit> lookAtTheEnd();
  [[nodiscard]] const std::string& why() const { return why_; }
  /// Whether anything runs in the session, as pid 1 said at the last look.
  [[nodiscard]] bool busy() const { return busy_; }
  /// How often the kernel killed a process of the session's cgroup for want of memory.
  [[nodiscard]] std::uint64_t memoryKills() const;
  /// Whether pid 1 is gone.
  [[nodiscard]] bool over() const { return over_; }
  /// Whether there is anything in this session that has to be watched at all.
  [[nodiscard]] static bool needed(const plan::Plan& plan);

 private:
  void begin(Clock::time_point now);
  void end(Limit limit);
  [[nodiscard]] std::uint64_t freeRoom() const;

  const Place& place_;
  const sys::RootDir& directory_;
  const Metadata& metadata_;
  std::function<Result<plan::Plan>()> whole_;
  plan::Plan plan_;
  bool on_disk_;
  sys::Fd upper_;
  std::uint64_t free_at_start_ = 0;
  timespec start_{};  ///< before the command, where one is waited for
  sys::Cgroup cgroup_;
  std::optional<Connection> connection_;
  std::optional<supervise::LimitWatch> watch_;
  std::optional<Clock::time_point> first_;
  std::string why_;
  bool busy_ = true, over_ = false, ended_ = false;
};

/// Bytes and files that the session keeps on disk besides its upper layer: what it rests on and its checkpoints.
/// Measured once per layer; the figures are kept beside them.
struct KeptSize {
  std::uint64_t bytes = 0, inodes = 0;
};
KeptSize sizeOfFrozen(const Place& place, const Metadata& metadata);
KeptSize sizeOfUpper(const Place& place, const Metadata& metadata);

/// Has an attendant watch what lives on in the session, unless one does.
void watchWhatLivesOn(const Place& place, const sys::RootDir& directory, const std::string& id);

/// The attendant's work.
int watchUntilIdle(const Place& place, const sys::RootDir& directory, const Metadata& metadata);

}  // namespace caisson::session
