// The cgroup of one sandbox: kernel-enforced limits on the process tree, its resource usage, and killing it.
//
//   const sys::CgroupBase base = sys::CgroupBase::find();          // cheap; keep it for many launches
//   auto cgroup = sys::Cgroup::create(base, sandbox_id, {.memory = 512 << 20, .pids = 64});
//   clone3 with CLONE_INTO_CGROUP and cgroup->descriptor()         // v2
//   or: the child itself writes "0" to each of cgroup->entries()   // v1, and v2 where the flag is refused
//   cgroup->usage().oom_kills                                      // why it ended
//
// Guarantees: writes to or removes only directories that caisson made. Two exceptions, both in a subtree that belongs
// to this user: cgroup.subtree_control of the base if a controller is missing there, and moving this process into a
// leaf if it is the only one in a delegated cgroup (v2 forbids processes in a cgroup whose children have controllers).
// CgroupBase::find changes nothing; the first create does.
// Not guaranteed: that a requested limit is in force. `CgroupBase::usable` lists what is possible, `Cgroup::enforced`
// what is in force.
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
  std::optional<std::uint64_t> memory;      ///< of every kind: anonymous, tmpfs, page cache, kernel objects
  std::optional<std::uint64_t> memory_low;  ///< reservation; v2 only
  std::uint64_t swap = 0;                   ///< on top of `memory`; ignored without `memory`
  std::optional<std::uint64_t> pids;        ///< processes and threads
  std::optional<double> cpus;               ///< CPU time per time: 1.5 is one and a half CPUs
  std::vector<std::uint32_t> cpuset;        ///< CPU numbers; empty: same as the base
  /// The disks that the io limits apply to, each separately, see `diskOf`; without any, there are no io limits.
  std::vector<dev_t> io_disks;
  std::optional<std::uint64_t> io_rbps, io_wbps, io_riops, io_wiops;  ///< bytes, and operations, per second
  /// v1: also makes a directory for CPU accounting, about 40 us. Without it `usage` has no CPU time there (v2 always
  /// has). Set it if the CPU time of running processes is limited; wait4 returns the time of exited children.
  bool account_cpu = false;
};

struct CgroupControllers {
  bool memory = false, pids = false, cpu = false, cpuset = false, io = false;
  bool operator==(const CgroupControllers&) const = default;
};

/// Which of the requested limits the kernel enforces. False for limits that were not requested.
struct CgroupEnforced {
  bool memory = false, memory_low = false, swap = false, pids = false, cpus = false, cpuset = false, io = false;
  /// v2: an out-of-memory kill kills the whole tree. Otherwise the kernel kills one process, and the supervisor must
  /// kill the rest.
  bool oom_group = false;
};

/// Where cgroups can be made. Found with a few system calls; reads no mountinfo on the usual layouts.
struct CgroupBase {
  enum class Kind : std::uint8_t { none, v1, v2 };
  /// Looks where this process may make cgroups. `kind` is `none` if nowhere; `why_not` then says why.
  static CgroupBase find();

  Kind kind = Kind::none;
  CgroupControllers usable;
  /// For users: what is missing and the remedy. Always set for `none`, else only if a controller is missing.
  std::string why_not;
  std::string directory;  ///< v2: path of the base, for messages

  // Below: for create() and removeAbandonedCgroups().
  struct Directory {
    Fd fd;                      ///< O_PATH
    std::string path;           ///< for messages
    CgroupControllers offers;   ///< v1: controllers of this hierarchy; v2: those children get or can get
    bool accounts_cpu = false;  ///< v1: cpuacct is in this hierarchy
  };
  std::vector<Directory> directories;  ///< v2: one; v1: one per hierarchy we use
  CgroupControllers to_enable;         ///< v2: usable only after a write to subtree_control
  bool needs_leaf = false;             ///< v2: the base is this process's own cgroup, which it must leave first
  std::string maker;                   ///< prefix of our directory names
  pid_t maker_pid = -1;
};
std::string_view name(CgroupBase::Kind kind);

/// nullopt where the host does not count it. Sums over the whole tree, including exited processes.
struct CgroupUsage {
  std::optional<std::uint64_t> memory_peak, memory_current;
  /// How often the limit made the kernel reclaim memory; that alone kills nothing. May stay 0 on v1: use oom_kills and
  /// the peak.
  std::optional<std::uint64_t> memory_limit_hits;
  std::optional<std::uint64_t> oom_kills;  ///< processes killed; with oom_group more than one per event
  std::optional<std::uint64_t> pids_peak, pids_current;
  std::optional<std::uint64_t> pids_limit_hits;  ///< denied forks
  std::optional<std::uint64_t> cpu_usec, cpu_user_usec, cpu_system_usec;
  std::optional<std::uint64_t> cpu_throttled_periods, cpu_throttled_usec;
  std::optional<std::uint64_t> io_read_bytes, io_written_bytes;
};

/// Name prefix of cgroups that outlive the process that made them; their owner must remove them.
inline constexpr std::string_view kKeptCgroup = "kept-";

class Cgroup {
 public:
  /// `name` is the sandbox's id, which no attacker can guess. Skips limits whose controller is not `usable`; see
  /// `enforced`. An error, with the new directories removed, if the base is `none` or the kernel refuses a value.
  static Result<Cgroup> create(const CgroupBase& base, std::string_view name, const CgroupLimits& limits);

  Cgroup() = default;  ///< no cgroup: calls do nothing; only createChild fails
  Cgroup(Cgroup&& other) noexcept;
  /// Takes over `other` after remove() of the cgroup that this object had, which kills its processes.
  Cgroup& operator=(Cgroup&& other) noexcept;
  /// Like remove(); what cannot be removed in time is left for removeAbandonedCgroups.
  ~Cgroup();

  [[nodiscard]] bool valid() const { return !directories_.empty(); }
  [[nodiscard]] CgroupBase::Kind kind() const { return kind_; }
  [[nodiscard]] const CgroupEnforced& enforced() const { return enforced_; }
  /// The name of its directories: a CgroupName (cgroup_files.h), or the plain name of a child.
  [[nodiscard]] const std::string& directoryName() const { return name_; }

  /// v2: for CLONE_INTO_CGROUP; -1 on v1.
  [[nodiscard]] int descriptor() const;

  /// Close-on-exec descriptors. A single-threaded child writes "0" to each as its first action, to enter. Much cheaper
  /// on v1 than add(): a thread that moves only itself does not wait for a kernel grace period. create() and
  /// createChild() open them on v1; on v2 there are none before openEntries().
  [[nodiscard]] std::span<const int> entries() const { return entry_numbers_; }
  /// Opens entries(), replacing earlier ones. Needed on v2 only where CLONE_INTO_CGROUP is refused.
  Result<void> openEntries();
  /// Closes entries(). Call once the child has its copies.
  void closeEntries();

  /// Moves another process into the cgroup; takes some milliseconds on an idle kernel.
  [[nodiscard]] Result<void> add(pid_t pid) const;

  /// Everything that can be read now, including current values. Slower than totals().
  [[nodiscard]] CgroupUsage usage() const;
  /// Final numbers, on the critical path of the caller: only peaks and sums, no current values and no
  /// memory_limit_hits. Reads denied forks only if the peak reached the limit or either is unknown, and OOM kills only
  /// if the peak came near the limit, either is unknown, or `suspicious`: a process was killed, perhaps because the
  /// host itself ran out of memory. What is not read is nullopt.
  [[nodiscard]] CgroupUsage totals(bool suspicious) const;
  /// One value of usage() each, without the cost of the others.
  [[nodiscard]] std::optional<std::uint64_t> cpuMicroseconds() const;
  [[nodiscard]] std::optional<std::uint64_t> oomKills() const;
  [[nodiscard]] std::optional<std::uint64_t> deniedForks() const;
  /// Bytes of reclaimable page cache; 0 where the kernel does not count it. Slower than usage().
  [[nodiscard]] std::uint64_t pageCache() const;

  /// For poll: v2 reports POLLPRI when memory.events changes (then read usage()), v1 POLLIN on an out-of-memory event.
  /// Invalid without a memory controller or if the kernel offers neither.
  [[nodiscard]] Fd oomEvents() const;

  /// Sends SIGKILL to every process inside. v2: one kernel operation, which may return before the processes are gone.
  /// Before 5.14 and on v1: blocks forks for good, if it has a pids controller, then kills one by one until none is
  /// left (2 s at most, then an error), but not those in child cgroups; remove() kills these. Do not keep a process
  /// inside that must survive.
  [[nodiscard]] Result<void> kill() const;

  // cgroup_child.cc: child cgroups without limits, to account and kill the processes of one command.
  /// Creates a child cgroup. v1: in the hierarchies that count memory or CPU time, or in the only one there is. v2:
  /// without controllers, since this cgroup holds a process; the kernel still counts CPU time there and supports
  /// cgroup.kill. Removed with this cgroup at the latest.
  [[nodiscard]] Result<Cgroup> createChild(std::string_view name) const;
  /// Makes `uid` the owner of cgroup.procs. CLONE_INTO_CGROUP into a child requires that for the child and for the
  /// cgroup above it.
  [[nodiscard]] Result<void> allowEntry(uid_t uid) const;
  /// Sends SIGKILL to every process inside without waiting; processes in child cgroups get it only on v2 since 5.14.
  /// The caller must check empty() for survivors.
  void killNow() const;
  /// Whether no process is inside (v2: nor in a child cgroup). False if that cannot be read or there is no cgroup.
  [[nodiscard]] bool empty() const;
  /// Prepares an empty cgroup for reuse: resets the memory peak. v1 only; children have no memory count on v2.
  void reset() const;

  /// Kills what is still inside, waits until it is gone (2 s at most), removes the directories. The object is empty
  /// afterwards, even on an error; what could not be removed is left for removeAbandonedCgroups.
  Result<void> remove();

  /// A cgroup that another process made and owns: only `enforced` is known.
  static Cgroup keptElsewhere(const CgroupEnforced& enforced) {
    Cgroup cgroup;
    cgroup.enforced_ = enforced;
    return cgroup;
  }

  /// Releases the cgroup without removing it, for a sandbox that outlives this process. Its name must begin with
  /// kKeptCgroup, or the next clean-up removes it as abandoned. Returns the directories, for removeKeptCgroup.
  std::vector<std::string> keep();

 private:
  struct Part {
    Fd parent, fd;  ///< of the directory above, and of our own (O_PATH)
    std::string path;
    CgroupControllers has;  ///< controllers of this directory
    bool accounts_cpu = false;
  };
  /// Makes the directories that `limits` need.
  Result<void> make(const CgroupBase& base, const CgroupLimits& limits);
  /// Writes the limits and fills enforced_. An error if the kernel refuses a value, except for swap and oom_group.
  Result<void> setLimits(const CgroupLimits& limits);
  /// The directory with this controller, or null.
  [[nodiscard]] const Part* part(bool CgroupControllers::* controller) const;
  /// Sets the CPU times of `usage`, as far as they can be read.
  void addCpuTimes(CgroupUsage& usage) const;
  /// The same for bytes read and written.
  void addIo(CgroupUsage& usage) const;
  /// The name of the file with the key `oom_kill`.
  [[nodiscard]] const char* oomFile() const;

  /// The parts of a cgroup that an earlier process made.
  static Cgroup adopt(const CgroupBase& base, std::string_view name);
  friend std::vector<std::string> removeAbandonedCgroups(const CgroupBase& base, const Cgroup& own);

  CgroupBase::Kind kind_ = CgroupBase::Kind::none;
  std::string name_;
  std::vector<Part> directories_;  ///< v2: one; v1: one per hierarchy
  std::vector<Fd> entries_;
  std::vector<int> entry_numbers_;  ///< the descriptors of entries_
  CgroupEnforced enforced_;
  std::uint64_t memory_limit_ = 0, pids_limit_ = 0;  ///< as set; 0: unknown
};

/// Removes directories that keep() returned. Kills nothing: waits up to 2 s for the last process to exit, then leaves
/// the directories.
void removeKeptCgroup(const std::vector<std::string>& directories);

/// How many processes of such a cgroup the kernel killed because of lack of memory; 0 if that cannot be read.
std::uint64_t oomKillsOf(const std::vector<std::string>& directories);

/// The whole disk below the file system of `fd`; the kernel's io limits do not accept partitions. nullopt for file
/// systems without a single device (tmpfs, overlay, btrfs, network) and on errors.
std::optional<dev_t> diskOf(int fd);

/// Clean-up at a later start: removes this user's directories below the base whose maker process is gone. Kills what
/// still runs inside, since its supervisor is dead, but nothing in a supervisor leaf (kSupervisorLeaf). Returns the
/// removed names. Does not touch kept cgroups (see kKeptCgroup), other users' directories, nor those made in another
/// pid namespace, where pids have another meaning.
/// Cheap if there is no directory but `own`.
std::vector<std::string> removeAbandonedCgroups(const CgroupBase& base, const Cgroup& own = {});

/// Removes empty cgroups with the kKeptCgroup prefix whose maker is gone and was started more than `older_than` ago.
/// Only the maker adds the first process, so they stay empty. Sessions leave them if their store was deleted by hand;
/// the delay preserves the OOM count of a session that just ended. Never touches a cgroup with processes. Returns the
/// removed names.
std::vector<std::string> removeEmptyKeptCgroups(const CgroupBase& base, std::chrono::seconds older_than);

}  // namespace caisson::sys
