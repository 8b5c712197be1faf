// One sandbox's own cgroup: limits the kernel enforces on the whole tree, what the tree used, and its end.
//
//   const sys::CgroupBase base = sys::CgroupBase::find();          // cheap; keep it for many launches
//   auto cgroup = sys::Cgroup::create(base, sandbox_id, {.memory = 512 << 20, .pids = 64});
//   clone3 with CLONE_INTO_CGROUP and cgroup->descriptor()         // v2
//   or: the child itself writes "0" to each of cgroup->entries()   // v1, and v2 where the flag is refused
//   cgroup->usage().oom_kills                                      // why it ended
//
// Guarantees: nothing but directories that caisson made is written to or removed. The exceptions are two, both in a
// subtree that belongs to this user: cgroup.subtree_control of the base when a controller is missing there, and our
// own move into a leaf when we are the only process of a delegated cgroup (no process may live in a cgroup whose
// children have controllers). CgroupBase::find changes nothing; the first create does.
// Not guaranteed: that a limit asked for is in force. `CgroupBase::usable` says what can be,
// `Cgroup::enforced` what is.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

struct CgroupLimits {
  std::optional<std::uint64_t> memory;      ///< bytes of every kind: anonymous, tmpfs, page cache, kernel objects
  std::optional<std::uint64_t> memory_low;  ///< reservation; v2 only
  std::uint64_t swap = 0;                   ///< on top of `memory`; not looked at without `memory`
  std::optional<std::uint64_t> pids;        ///< processes and threads
  std::optional<double> cpus;
  std::vector<std::uint32_t> cpuset;  ///< CPU numbers; empty: as the base
  /// The disks that the io limits hold for, each by itself, see `diskOf`; without any they are not in force.
  std::vector<dev_t> io_disks;
  std::optional<std::uint64_t> io_rbps, io_wbps, io_riops, io_wiops;
  /// v1: also a directory for CPU accounting, about 40 us. Without it `usage` knows no CPU time there (v2 always does);
  /// ask for it when the CPU time of the running tree is a limit. The time of ended children is in wait4's answer.
  bool account_cpu = false;
};

struct CgroupControllers {
  bool memory = false, pids = false, cpu = false, cpuset = false, io = false;
  bool operator==(const CgroupControllers&) const = default;
};

/// Which of the limits asked for the kernel holds. False for one that was not asked for.
struct CgroupEnforced {
  bool memory = false, memory_low = false, swap = false, pids = false, cpus = false, cpuset = false, io = false;
  /// An out-of-memory kill ends the whole tree (v2); else the kernel picks one process, and the supervisor must act.
  bool oom_group = false;
};

/// Where our cgroups can be made. Found with a few system calls: no mountinfo on the usual layouts.
struct CgroupBase {
  enum class Kind : std::uint8_t { none, v1, v2 };
  static CgroupBase find();

  Kind kind = Kind::none;
  CgroupControllers usable;
  /// For people: what is missing and the remedy. Always set for `none`; otherwise set when a controller is missing.
  std::string why_not;
  std::string directory;  ///< v2: the base as a path, for messages

  // Below: for create and removeAbandonedCgroups.
  struct Directory {
    Fd fd;                      ///< O_PATH
    std::string path;           ///< for messages
    CgroupControllers offers;   ///< v1: controllers of this hierarchy; v2: those children get or can get
    bool accounts_cpu = false;  ///< v1: cpuacct is in this hierarchy
  };
  std::vector<Directory> directories;  ///< v2: one; v1: one per hierarchy we use
  CgroupControllers to_enable;         ///< v2: usable only after a write to subtree_control
  bool needs_leaf = false;             ///< v2: the base is our own cgroup, and we must leave it first
  std::string maker;                   ///< what names of our directories begin with
  pid_t maker_pid = -1;
};
std::string_view name(CgroupBase::Kind kind);

/// Nothing where the host does not count it. Sums over the whole tree, ended processes included.
struct CgroupUsage {
  std::optional<std::uint64_t> memory_peak, memory_current;
  /// Times the limit made the kernel reclaim; not an end by itself. On v1 it may stay 0: ask oom_kills and the peak.
  std::optional<std::uint64_t> memory_limit_hits;
  std::optional<std::uint64_t> oom_kills;  ///< processes killed; with oom_group more than one per event
  std::optional<std::uint64_t> pids_peak, pids_current;
  std::optional<std::uint64_t> pids_limit_hits;  ///< forks refused
  std::optional<std::uint64_t> cpu_usec, cpu_user_usec, cpu_system_usec;
  std::optional<std::uint64_t> cpu_throttled_periods, cpu_throttled_usec;
  std::optional<std::uint64_t> io_read_bytes, io_written_bytes;
};

/// What the `name` of a cgroup begins with that outlives its maker; who keeps it removes it.
inline constexpr std::string_view kKeptCgroup = "kept-";

class Cgroup {
 public:
  /// `name` is the sandbox's id: nobody can have guessed it. Nothing is left behind on failure.
  /// A limit whose controller is not `usable` is left out; see `enforced`.
  static Result<Cgroup> create(const CgroupBase& base, std::string_view name, const CgroupLimits& limits);

  Cgroup() = default;  ///< none: every call does nothing
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  /// As remove(); what can't be removed in time is left for removeAbandonedCgroups.
  ~Cgroup();

  [[nodiscard]] bool valid() const { return !directories_.empty(); }
  [[nodiscard]] CgroupBase::Kind kind() const { return kind_; }
  [[nodiscard]] const CgroupEnforced& enforced() const { return enforced_; }
  [[nodiscard]] const std::string& directoryName() const { return name_; }

  /// v2: for CLONE_INTO_CGROUP; -1 on v1.
  [[nodiscard]] int descriptor() const;

  /// Descriptors (close-on-exec) to which a single-threaded child writes "0" to enter, first of all it does.
  /// Much cheaper on v1 than add(): a thread that moves only itself needs no grace period of the kernel.
  /// Opened by create on v1; on v2 by openEntries, for where CLONE_INTO_CGROUP is refused.
  [[nodiscard]] std::span<const int> entries() const { return entry_numbers_; }
  Result<void> openEntries();
  /// Closes them once the child has its copies.
  void closeEntries();

  /// Moves another process in, by its pid; some milliseconds on an idle kernel.
  [[nodiscard]] Result<void> add(pid_t pid) const;

  [[nodiscard]] CgroupUsage usage() const;
  /// At the end, on the way of whoever waits for it: peaks and sums, nothing of the moment. What can only have happened
  /// at a limit (a kill for want of memory, a refused fork) is asked for where the peak came near it, and always when
  /// `suspicious`: something was killed, and the host's own want of memory may be why.
  [[nodiscard]] CgroupUsage totals(bool suspicious) const;
  /// Bytes of files in memory that can be given back; 0 where nobody counts them. Dearer than usage().
  [[nodiscard]] std::uint64_t pageCache() const;

  /// For poll: v2 wakes with POLLPRI when memory.events changes (then ask usage), v1 with POLLIN on an out-of-memory.
  /// Invalid where there is no such thing.
  [[nodiscard]] Fd oomEvents() const;

  /// SIGKILL to everything inside. v2: one step of the kernel's, which may return before the processes are gone.
  /// Before 5.14 and on v1: no more forks, then one by one until none is left (2 s at most). Keep no process inside
  /// that must live on.
  [[nodiscard]] Result<void> kill() const;

  // cgroup_child.cc: cgroups inside this one, without limits: whose processes used what, and their end.
  /// v1: where memory and CPU time are counted. v2: with none, since this one holds a process; the kernel still counts
  /// CPU time there and kills all of it at once. Removed with this one at the latest.
  [[nodiscard]] Result<Cgroup> createChild(std::string_view name) const;
  /// For CLONE_INTO_CGROUP by a process of another user: lets `uid` move itself to a child.
  [[nodiscard]] Result<void> allowEntry(uid_t uid) const;
  /// SIGKILL to everything inside, without waiting: what survives a few rounds is for the caller to see.
  void killNow() const;
  [[nodiscard]] bool empty() const;
  /// For the next user of an empty one: the peak begins anew where the kernel lets it.
  void reset() const;

  /// Ends what is still inside, waits until it is gone (2 s at most), removes the directories.
  Result<void> remove();

  /// One that somebody else made and keeps: only `enforced` is known of it.
  static Cgroup keptElsewhere(const CgroupEnforced& enforced) {
    Cgroup cgroup;
    cgroup.enforced_ = enforced;
    return cgroup;
  }

  /// Lets go without removing: for a sandbox that outlives this process. Its name must begin with kKeptCgroup, or
  /// the next clean-up takes it for abandoned. The directories, as paths, for removeKeptCgroup.
  std::vector<std::string> keep();

 private:
  struct Part {
    Fd parent, fd;
    std::string path;
    CgroupControllers has;
    bool accounts_cpu = false;
  };
  Result<void> make(const CgroupBase& base, const CgroupLimits& limits);
  Result<void> setLimits(const CgroupLimits& limits);
  [[nodiscard]] const Part* part(bool CgroupControllers::* controller) const;
  void addCpuTimes(CgroupUsage& usage) const;
  void addIo(CgroupUsage& usage) const;
  [[nodiscard]] const char* oomFile() const;

  /// The parts of one that an earlier process made.
  static Cgroup adopt(const CgroupBase& base, std::string_view name);
  friend std::vector<std::string> removeAbandonedCgroups(const CgroupBase& base, const Cgroup& own);

  CgroupBase::Kind kind_ = CgroupBase::Kind::none;
  std::string name_;
  std::vector<Part> directories_;
  std::vector<Fd> entries_;
  std::vector<int> entry_numbers_;
  CgroupEnforced enforced_;
  std::uint64_t memory_limit_ = 0, pids_limit_ = 0;  ///< as set; 0: nobody here knows
};

/// Removes directories that keep() named, after their last process has ended; waits for that 2 s at most.
void removeKeptCgroup(const std::vector<std::string>& directories);

/// How many processes of such a cgroup the kernel killed for want of memory.
std::uint64_t oomKillsOf(const std::vector<std::string>& directories);

/// The whole disk below the file system of `fd`, as the kernel's io limits want it (a partition will not do).
/// Nothing for file systems without one device of their own (tmpfs, overlay, btrfs, network).
std::optional<dev_t> diskOf(int fd);

/// Clean-up at a later start: directories of ours below the base whose maker, a process of this user, is gone. What
/// still runs inside is killed first: its supervisor is dead. Returns the names removed. Others' directories, and
/// those of makers in another pid namespace (whose pids mean nothing here), are not touched.
/// Costs next to nothing when there is no directory but `own`.
std::vector<std::string> removeAbandonedCgroups(const CgroupBase& base, const Cgroup& own = {});

/// Of those that were to outlive their maker: the ones that nobody is left in and whose maker, who alone lets the first
/// process in, is gone and was started so long ago. Sessions leave such when their store was removed by hand; of one
/// that has just ended, somebody may still want to know why. What is inhabited is not touched.
std::vector<std::string> removeEmptyKeptCgroups(const CgroupBase& base, std::chrono::seconds older_than);

}  // namespace caisson::sys
