// One cgroup per command of a session, inside the session's: what the command used, whether its memory ran out, and the
// end of all its processes at once.
//
// Making and removing a cgroup costs more than a command: they are kept and used again once nothing is left in them.
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

  /// For a spawn request.
  [[nodiscard]] std::vector<int> descriptors() const;
  [[nodiscard]] CgroupEntry entry() const;

  /// What this command used so far; nothing where the kernel does not count it.
  sys::CgroupUsage usage();
  bool ranOutOfMemory() { return usage().oom_kills.value_or(0) > 0; }
  /// SIGKILL to every process of the command, also to those that left its session and process group.
  void kill() const { cgroup_.killNow(); }

 private:
  friend class CommandCgroups;
  sys::Cgroup cgroup_;
  sys::CgroupUsage before_;  ///< by earlier commands
  sys::CgroupUsage latest_;  ///< by all of them, when usage() was called last
};

class CommandCgroups {
 public:
  /// `session` outlives this. `uid`: of pid 1 where that is not the caller.
  CommandCgroups(const sys::Cgroup& session, std::optional<uid_t> uid);

  /// Nothing: the session has no cgroup, or there are too many; the command then runs in the session's own.
  std::optional<CommandCgroup> take();
  /// After the command's exit and a last call of usage(). It is used again when the last process that the command left
  /// behind is gone. `alone`: there is none.
  void giveBack(CommandCgroup cgroup, bool alone);
  /// Whether the kernel killed a left-behind process for want of memory since the last call.
  bool leftBehindRanOutOfMemory();
  /// When there is time: makes sure that take() has one ready.
  void refill();

 private:
  std::optional<CommandCgroup> make();
  void reclaim();

  const sys::Cgroup& session_;
  std::optional<uid_t> uid_;
  std::vector<CommandCgroup> ready_;
  std::list<CommandCgroup> occupied_;  ///< by left-behind processes
  std::uint32_t last_ = 0;
  std::size_t count_ = 0;
};

}  // namespace caisson::session
