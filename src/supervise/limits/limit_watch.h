// The limits of a running sandbox that must be polled: CPU time of the tree, disk, and without a cgroup memory and
// processes. Also usage, and warnings for limits that came near.
//
//   LimitWatch watch(plan, cgroup, on_near);
//   watch.countCpu(init_pid);                 before the payload is started
//   watch.begin(init_pid, now);               once the payload runs
//   ... poll until watch.next(); if (auto reached = watch.look(now)) end the run, and say why
//   watch.finish(by_force, result);           usage, warnings at 80 %, denied forks; then met()
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/limits/disk_watch.h"
#include "supervise/processes/process_tree.h"
#include "supervise/syscalls/denials.h"
#include "sys/cgroup.h"
#include "sys/cpu_clock.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// A denial for a result: the process limit denied `count` new processes or threads; 0: it is not known how many. The
/// number is in the text of `object`; Denial::count stays 0.
Denial deniedForks(std::uint64_t count);

/// The targets of the size-limited directories of which a launch sent descriptors: bit n of `mask` is the plan's n-th
/// tmpfs step.
std::vector<std::string> sizedTargets(const plan::Plan& plan, std::uint32_t mask);

class LimitWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `on_near` is called once for each limit that reaches 80 %.
  LimitWatch(const plan::Plan& plan, const sys::Cgroup& cgroup, std::function<void(const std::string&)> on_near);

  /// Makes the kernel count the CPU time of the tree, if the plan limits it and no cgroup counts it. Call before pid 1
  /// forks the payload: existing processes are not counted.
  void countCpu(pid_t init);
  /// Starts to poll the tree below pid 1. Call once the payload runs.
  void begin(pid_t init, Clock::time_point now);
  /// Descriptors of the plan's size-limited directories, as the child sent them (sizedTargets).
  void addSized(std::uint32_t mask, std::vector<sys::Fd> directories);
  /// The overlay's upper directory, which counts against the disk limit.
  void addUpper(int directory);
  /// The plan's size-limited directories on disk, in its order.
  void addDirectories(const std::vector<sys::Fd>& descriptors);
  /// As DiskWatch::usePace.
  void useDiskPace(DiskWatch::Pace& pace);
  /// As DiskWatch::useNamespace.
  void useNamespace(sys::Fd sandbox);
  /// As DiskWatch::useClosedSizes.
  void useClosedSizes(ClosedSizes& sizes);
  /// For a reused cgroup: the number of earlier OOM kills.
  void ignoreMemoryKills(std::uint64_t count) { earlier_kills_ = count; }
  /// Bytes in System V objects, as counted by pid 1.
  void setIpcBytes(std::uint64_t bytes) { ipc_bytes_ = bytes; }
  /// Whether setIpcBytes() needs to be called before the next poll.
  [[nodiscard]] bool wantsIpcBytes() const { return watches_memory_ && plan_.namespaces.ipc; }

  /// The descriptor of the size-limited directory at `target`, valid after the end too; -1 if there is none.
  [[nodiscard]] int sizedDirectory(std::string_view target) const;

  /// When to poll next; nothing if there is nothing to poll.
  [[nodiscard]] std::optional<Clock::time_point> next() const { return next_; }
  /// Polls. Returns the exceeded limit, if any: the run must end. Does nothing before begin().
  std::optional<Limit> look(Clock::time_point now);

  /// Call after a write was refused for its size: finds the directory on disk that is full; full() returns it.
  void findFullDirectory();
  /// Notes the sizes of caches for the next sandbox that uses them (caches.h). Waits at most `timeout` for the size of
  /// each that has closed directories.
  void noteCaches(std::chrono::milliseconds timeout);

  /// Call before the tree is killed: takes a last sample of its CPU time, unless a cgroup counts that.
  void beforeTheEnd();

  /// Call after the end, with the rusage of all children in `result.usage`: completes the usage, and adds warnings at
  /// 80 %, denied forks and the reason of an exceeded disk limit. `by_force`: it was killed.
  void finish(bool by_force, RunResult& result);
  /// After finish: whether the kernel's OOM killer killed a process.
  [[nodiscard]] bool ranOutOfMemory() const { return oom_kills_ > 0; }
  /// The process limit left no room when the program failed.
  void noteFullOfProcesses() { full_at_end_ = watches_processes_; }
  /// After finish: the limit that a program hit before it failed by itself: processes, disk (a full directory in
  /// memory) or none.
  [[nodiscard]] Limit met() const;
  /// The size-limited directory that was full, if any.
  [[nodiscard]] const std::string& full() const { return full_; }
  [[nodiscard]] const FilesInMemory& filesInMemory() const { return files_in_memory_; }

 private:
  struct Sized {
    std::string name;
    sys::Fd fd;
  };
  /// Whether a memory peak may be that of this process: until its exec the payload's process is a copy of ours, and the
  /// kernel's high-water mark includes that. False if this process is small.
  static bool isLaunchersPeak(std::uint64_t bytes);
  /// Adds a warning, and calls `on_near` once, if `used` is 80 % of `most` or more.
  void noteUse(Limit limit, const std::string& what, double used, double most);
  /// Takes the CPU time from the cgroup's counters, and warns if memory without the page cache is near its limit.
  void lookAtCgroup(const sys::CgroupUsage& counted);
  /// Updates the CPU time: the larger count of the perf clock, which misses a process that executed an unreadable file,
  /// and of /proc, which misses one that is reaped between two polls.
  void takeCpu(const TreeUsage& sampled);
  /// Returns the bytes in the size-limited directories in memory; notes which are near their limit or full.
  std::uint64_t lookAtSized();
  /// Polls the processes in /proc; Limit::memory if that is exceeded and no cgroup enforces it. `counts_cpu`: the
  /// cgroup counts CPU time already.
  std::optional<Limit> lookAtTree(bool counts_cpu);
  /// Polls the disk; Limit::disk if a limit is exceeded.
  std::optional<Limit> lookAtDisk(Clock::time_point now);
  /// Sets the time of the next poll. `cost`: the duration of the last one.
  void planNext(Clock::time_point now, Clock::duration cost);
  /// Corrects a usage, which holds the rusage of waited-for processes only, by what the cgroup and the polls counted.
  void takeUsage(const sys::CgroupUsage& counted, Usage& usage) const;

  const plan::Plan& plan_;
  const sys::Cgroup& cgroup_;
  std::function<void(const std::string&)> on_near_;
  bool watches_memory_ = false, watches_processes_ = false;
  std::optional<ProcessTree> tree_;
  std::optional<DiskWatch> disk_;
  std::optional<sys::CpuClock> cpu_clock_;
  bool clock_misses_ = false;  ///< there is a process that the clock does not count
  std::string cpu_layer_;      ///< how CPU time is counted, for the result
  std::optional<Error> clock_error_;
  std::vector<Sized> sized_;
  std::optional<Clock::time_point> next_;
  std::uint64_t ipc_bytes_ = 0, oom_kills_ = 0, earlier_kills_ = 0;
  std::uint64_t cpu_usec_ = 0, memory_ = 0, memory_peak_ = 0, processes_peak_ = 0;
  bool met_processes_ = false, met_disk_ = false, full_at_end_ = false;
  std::string full_;
  FilesInMemory files_in_memory_;
  struct Near {
    std::string text;
    double share = 0;
  };
  std::map<std::string, Near> near_;  ///< limits that reached 80 %, by name
  std::string why_;                   ///< the reason of an exceeded limit, for the result
};

}  // namespace caisson::supervise
