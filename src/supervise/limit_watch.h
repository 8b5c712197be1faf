// The limits of a running sandbox that somebody has to look at: CPU time of the tree, disk, and without a cgroup memory
// and processes. Also what was used, and which limits came near (SPEC R3 to R5).
//
//   LimitWatch watch(plan, cgroup, on_near);
//   watch.countCpu(init_pid);                 before the payload is started
//   watch.begin(init_pid, now);               once the payload runs
//   ... poll until watch.next(); if (auto reached = watch.look(now)) end the run, and say why
//   watch.finish(result);                     usage, warnings at 80 %, a limit that explains a failure
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/disk_watch.h"
#include "supervise/process_tree.h"
#include "sys/cgroup.h"
#include "sys/cpu_clock.h"
#include "sys/fd.h"

namespace caisson::supervise {

class LimitWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `on_near` is told once about each limit that comes to 80 %, when it does.
  LimitWatch(const plan::Plan& plan, const sys::Cgroup& cgroup, std::function<void(const std::string&)> on_near);

  /// Has the kernel count the CPU time of the tree, where the plan limits it and no cgroup counts it. Before pid 1
  /// forks the payload: processes that exist already are not counted.
  void countCpu(pid_t init);
  void begin(pid_t init, Clock::time_point now);
  /// Descriptors of the plan's sized directories, as the child sent them: bit n of `mask` is the n-th tmpfs step.
  void addSized(std::uint32_t mask, std::vector<sys::Fd> directories);
  void addUpper(int directory);
  /// Of a cgroup that was used before: so many processes were killed for want of memory earlier.
  void ignoreMemoryKills(std::uint64_t count) { earlier_kills_ = count; }
  /// What pid 1 counted of System V objects.
  void setIpcBytes(std::uint64_t bytes) { ipc_bytes_ = bytes; }
  /// Whether pid 1 should be asked for that before the next look.
  [[nodiscard]] bool wantsIpcBytes() const { return watches_memory_ && plan_.namespaces.ipc; }

  /// When to look again; nothing when there is nothing to look at.
  [[nodiscard]] std::optional<Clock::time_point> next() const { return next_; }
  /// The limit that was exceeded, if one was: the run has to end.
  std::optional<Limit> look(Clock::time_point now);

  /// When the tree is about to be killed: the last chance to see what its processes used.
  void beforeTheEnd();

  /// After the end, with the rusage of all children in `result.usage` already.
  /// `by_force`: something ended it that was not its own decision.
  void finish(bool by_force, RunResult& result);
  /// After finish: whether the kernel killed somebody for want of memory.
  [[nodiscard]] bool ranOutOfMemory() const { return oom_kills_ > 0; }
  /// After finish: the limit that a program met which then failed by itself, if any.
  [[nodiscard]] Limit met() const;
  /// The sized directory that was full, if one was.
  [[nodiscard]] const std::string& full() const { return full_; }

 private:
  struct Sized {
    std::string name;
    sys::Fd fd;
  };
  static bool isLaunchersPeak(std::uint64_t bytes);
  void noteUse(Limit limit, const std::string& what, double used, double most);
  void lookAtCgroup(const sys::CgroupUsage& counted);
  void takeCpu(const TreeUsage& sampled);
  /// Bytes in the sized directories.
  std::uint64_t lookAtSized();
  std::optional<Limit> lookAtTree(bool counts_cpu);
  std::optional<Limit> lookAtDisk(Clock::time_point now);
  void planNext(Clock::time_point now, Clock::duration cost);
  void takeUsage(const sys::CgroupUsage& counted, Usage& usage) const;

  const plan::Plan& plan_;
  const sys::Cgroup& cgroup_;
  std::function<void(const std::string&)> on_near_;
  bool watches_memory_ = false, watches_processes_ = false;
  std::optional<ProcessTree> tree_;
  std::optional<DiskWatch> disk_;
  std::optional<sys::CpuClock> cpu_clock_;
  bool clock_misses_ = false;  ///< a process is seen that the clock does not count
  std::string cpu_layer_;      ///< how CPU time is counted, for the result
  std::optional<Error> clock_error_;
  std::vector<Sized> sized_;
  std::optional<Clock::time_point> next_;
  std::uint64_t ipc_bytes_ = 0, oom_kills_ = 0, earlier_kills_ = 0;
  std::uint64_t cpu_usec_ = 0, memory_ = 0, memory_peak_ = 0, processes_peak_ = 0;
  bool met_processes_ = false, met_disk_ = false;
  std::string full_;
  struct Near {
    std::string text;
    double share = 0;
  };
  std::map<std::string, Near> near_;  ///< what came to 80 % of its limit, by name
  std::string why_;
};

}  // namespace caisson::supervise
