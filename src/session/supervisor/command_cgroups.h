// One cgroup per command of a session, inside the session's: counts usage and OOM kills, and kills all processes at
// once.
//
// Creating and removing a cgroup costs more than a command: they are reused once they are empty, but not after
// cgroup.kill. Linux 6.18 kills every process that is created in such a cgroup (CLONE_INTO_CGROUP).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "session/init/init_protocol.h"
#include "sys/cgroup.h"

namespace caisson::session {

class CommandCgroup {
 public:
  explicit CommandCgroup(sys::Cgroup cgroup) : cgroup_(std::move(cgroup)) {}

  /// The descriptors for a spawn request, and their kind.
  [[nodiscard]] std::vector<int> descriptors() const;
  [[nodiscard]] CgroupEntry entry() const;

  /// Usage of this command so far; nothing where the kernel does not count it.
  sys::CgroupUsage usage();
  bool ranOutOfMemory() { return usage().oom_kills.value_or(0) > 0; }
  /// SIGKILL to every process of the command, also to those that left its session and process group.
  void kill() {
    killed_ = true;
    cgroup_.killNow();
  }

 private:
  friend class CommandCgroups;
  sys::Cgroup cgroup_;
  sys::CgroupUsage before_;  ///< usage of earlier commands
  sys::CgroupUsage latest_;  ///< usage of all of them, at the last call of usage()
  bool killed_ = false;
};

class CommandCgroups {
 public:
  /// `session`: the session's cgroup, which must outlive this. `uid`: of pid 1 where that is not the caller's.
  CommandCgroups(const sys::Cgroup& session, std::optional<uid_t> uid);

  /// An empty cgroup for a command. Nothing if the session has no cgroup, or there are too many; the command then runs
  /// in the session's.
  std::optional<CommandCgroup> take();
  /// Call after the command's exit and a last call of usage(). `alone`: the command left no process behind. Otherwise
  /// the cgroup is reused when the last one exited.
  void giveBack(CommandCgroup cgroup, bool alone);
  /// Whether the OOM killer killed a left-behind process since the last call.
  bool leftBehindRanOutOfMemory();
  /// Call when idle: prepares a cgroup for the next take().
  void refill();

 private:
  /// Creates a cgroup; nothing if there are too many or the host does not support it.
  std::optional<CommandCgroup> make();
  /// Makes the cgroups whose last left-behind process exited ready.
  void reclaim();

  const sys::Cgroup& session_;
  std::optional<uid_t> uid_;
  std::vector<CommandCgroup> ready_;
  std::list<CommandCgroup> occupied_;  ///< by left-behind processes
  std::uint32_t last_ = 0;             ///< number in the name of the last one
  std::size_t count_ = 0;              ///< those that exist
  bool unsupported_ = false;           ///< cgroups cannot be created here
};

}  // namespace caisson::session
