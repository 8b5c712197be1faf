#include "supervise/limits/limit_watch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "supervise/disk/caches.h"

namespace caisson::supervise {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto kAtOnce = milliseconds(5);      // only frequent polls see short-lived children
constexpr auto kSoon = milliseconds(20);       // a limit is near, or the kernel does not enforce it
constexpr auto kOften = milliseconds(50);      // only these polls count usage
constexpr auto kSeldom = milliseconds(250);    // the kernel enforces the limits; only for warnings
constexpr auto kBlind = milliseconds(200);     // the longest interval between polls, if possible
constexpr double kNear = 0.8;                  // of a limit, for a warning
constexpr std::uint64_t kClockSlack = 50'000;  // microseconds: /proc counts in ticks of 10 ms per process

std::string amount(Limit limit, double value) {
  const auto rounded = static_cast<std::uint64_t>(value);
  switch (limit) {
    case Limit::memory:
    case Limit::disk:
    case Limit::output:
      return rounded >= policy::kMiB ? std::to_string(rounded / policy::kMiB) + " MiB"
                                     : std::to_string(rounded) + " bytes";
    case Limit::time:
    case Limit::cpu: return std::to_string(std::llround(value * 1000)) + " ms";
    default: return std::to_string(rounded);
  }
}

struct Fill {
  std::uint64_t used = 0, total = 0, inodes_used = 0, inodes = 0;
};

std::optional<Fill> fillOf(int fd) {
  struct statfs status{};
  if (::fstatfs(fd, &status) != 0 || status.f_blocks == 0) return std::nullopt;
  const auto unit = static_cast<std::uint64_t>(status.f_bsize);
  return Fill{(status.f_blocks - status.f_bfree) * unit, status.f_blocks * unit, status.f_files - status.f_ffree,
              status.f_files};
}

}  // namespace

Denial deniedForks(std::uint64_t count) {
  const std::string object = count == 0 ? "an unknown number of attempts" : std::to_string(count) + " attempts";
  return {"process.max_processes", object, "start a process or thread", "raise the limit with --pids"};
}

bool LimitWatch::isLaunchersPeak(std::uint64_t bytes) {
  constexpr std::uint64_t kSmall = 16 << 20;
  rusage own{};
  ::getrusage(RUSAGE_SELF, &own);
  const auto peak = static_cast<std::uint64_t>(own.ru_maxrss) * 1024;
  return peak > kSmall && bytes <= peak;
}

LimitWatch::LimitWatch(const plan::Plan& plan, const sys::Cgroup& cgroup,
                       std::function<void(const std::string&)> on_near)
    : plan_(plan), cgroup_(cgroup), on_near_(std::move(on_near)) {
  if (plan.disk) disk_.emplace(*plan.disk);
}

void LimitWatch::countCpu(pid_t init) {
  if (!plan_.cpu_seconds) return;
  if (cgroup_.cpuMicroseconds()) {
    cpu_layer_ = "counted (cgroup)";
    return;
  }
  if (auto clock = sys::CpuClock::open(init)) {
    cpu_clock_.emplace(std::move(*clock));
    cpu_layer_ = "counted (perf)";
  } else {
    clock_error_ = clock.error();
    cpu_layer_ = "sampled";
  }
}

void LimitWatch::begin(pid_t init, Clock::time_point now) {
  tree_.emplace(init);
  watches_memory_ = plan_.memory_bytes > 0 && !cgroup_.enforced().memory;
  watches_processes_ = plan_.max_tasks > 0 && !cgroup_.enforced().pids;
  next_ = now + (watches_memory_ || disk_ ? milliseconds(10) : kOften);
}

std::vector<std::string> sizedTargets(const plan::Plan& plan, std::uint32_t mask) {
  std::vector<std::string> targets;
  std::uint32_t number = 0;
  for (const plan::Step& step : plan.steps) {
    const auto* tmpfs = std::get_if<plan::MountTmpfs>(&step);
    if (tmpfs == nullptr) continue;
    if (number < 32 && (mask >> number & 1U) != 0) targets.push_back(tmpfs->target);
    ++number;
  }
  return targets;
}

void LimitWatch::addSized(std::uint32_t mask, std::vector<sys::Fd> directories) {
  std::vector<std::string> targets = sizedTargets(plan_, mask);
  for (std::size_t at = 0; at < std::min(targets.size(), directories.size()); ++at) {
    sized_.push_back({std::move(targets[at]), std::move(directories[at])});
  }
}

void LimitWatch::addDirectories(const std::vector<sys::Fd>& descriptors) {
  if (disk_) disk_->addDirectories(descriptors);
}

void LimitWatch::useDiskPace(DiskWatch::Pace& pace) {
  if (disk_) disk_->usePace(pace);
}

int LimitWatch::sizedDirectory(std::string_view target) const {
  const auto found = std::ranges::find(sized_, target, &Sized::name);
  return found == sized_.end() ? -1 : found->fd.get();
}

void LimitWatch::useNamespace(sys::Fd sandbox) {
  if (disk_) disk_->useNamespace(std::move(sandbox));
}

void LimitWatch::useClosedSizes(ClosedSizes& sizes) {
  if (disk_) disk_->useClosedSizes(sizes);
}

void LimitWatch::addUpper(int directory) {
  if (disk_ && plan_.disk->upper) return disk_->addUpper(directory);
  const auto is_overlay = [](const plan::Step& step) { return std::holds_alternative<plan::MountOverlay>(step); };
  const auto overlay = std::find_if(plan_.steps.begin(), plan_.steps.end(), is_overlay);
  if (overlay == plan_.steps.end()) return;
  sized_.push_back({std::get<plan::MountOverlay>(*overlay).target, sys::Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 3))});
}

void LimitWatch::noteUse(Limit limit, const std::string& what, double used, double most) {
  if (most <= 0 || used < kNear * most) return;
  Near& near = near_[what];
  if (used / most <= near.share) return;
  const bool first = near.share == 0;
  near.share = used / most;
  if (used >= most) {
    near.text = what + " reached the limit (" + amount(limit, most) + ")";
  } else {
    near.text = what + " came to " + std::to_string(static_cast<int>(std::floor(100 * used / most))) +
                " % of its limit (" + amount(limit, used) + " of " + amount(limit, most) + ")";
  }
  if (first) on_near_(near.text);
}

std::uint64_t LimitWatch::lookAtSized() {
  std::uint64_t in_memory = 0;
  for (const Sized& one : sized_) {
    const auto fill = fillOf(one.fd.get());
    if (!fill) continue;
    in_memory += fill->used;
    if (fill->used > files_in_memory_.bytes) files_in_memory_ = {one.name, fill->used};
    noteUse(Limit::disk, one.name, static_cast<double>(fill->used), static_cast<double>(fill->total));
    noteUse(Limit::none, "files in " + one.name, static_cast<double>(fill->inodes_used),
            static_cast<double>(fill->inodes));
    // A program that cleans up after ENOSPC may free a page or two; an unlimited program would not stop this close to
    // the end.
    if (fill->used + 64 * 1024 > fill->total || fill->inodes_used + 4 > fill->inodes) {
      met_disk_ = true;
      full_ = one.name;
    }
  }
  return in_memory;
}

void LimitWatch::lookAtCgroup(const sys::CgroupUsage& counted) {
  if (counted.cpu_usec) cpu_usec_ = *counted.cpu_usec;
  if (watches_memory_ || !counted.memory_current || plan_.memory_bytes == 0) return;
  if (*counted.memory_current < static_cast<std::uint64_t>(kNear * static_cast<double>(plan_.memory_bytes))) return;
  // Warn without the page cache: the kernel reclaims it before the limit denies anything.
  const std::uint64_t cache = std::min(cgroup_.pageCache(), *counted.memory_current);
  noteUse(Limit::memory, "memory", static_cast<double>(*counted.memory_current - cache),
          static_cast<double>(plan_.memory_bytes));
}

void LimitWatch::takeCpu(const TreeUsage& sampled) {
  const std::uint64_t clocked = cpu_clock_ ? static_cast<std::uint64_t>(cpu_clock_->used().count()) : 0;
  clock_misses_ = cpu_clock_ && sampled.cpu_usec > clocked + kClockSlack;
  cpu_usec_ = std::max({cpu_usec_, clocked, sampled.cpu_usec});
}

std::optional<Limit> LimitWatch::lookAtTree(bool counts_cpu) {
  const std::uint64_t elsewhere = lookAtSized() + ipc_bytes_;
  if (!watches_memory_ && !watches_processes_ && (!plan_.cpu_seconds || counts_cpu)) return std::nullopt;
  const std::uint64_t near = plan_.memory_bytes / 10 * 8;
  const TreeUsage usage = tree_->look(near - std::min(near, elsewhere));
  if (!counts_cpu) takeCpu(usage);
  if (watches_processes_) {
    processes_peak_ = std::max(processes_peak_, usage.threads);
    met_processes_ = met_processes_ || usage.threads >= plan_.max_tasks;
  }
  if (!watches_memory_) return std::nullopt;
  // Mapped shared memory is mostly the same that is counted at its owner: use the larger of the two.
  memory_ = usage.memory + std::max(usage.mapped, elsewhere + usage.memfds);
  memory_peak_ = std::max(memory_peak_, memory_);
  noteUse(Limit::memory, "memory", static_cast<double>(memory_), static_cast<double>(plan_.memory_bytes));
  if (memory_ > plan_.memory_bytes) return Limit::memory;
  return std::nullopt;
}

std::optional<Limit> LimitWatch::lookAtDisk(Clock::time_point now) {
  if (!disk_ || !disk_->active()) return std::nullopt;
  auto exceeded = disk_->look(now, *tree_);
  for (const DiskWatch::Fill& one : disk_->directories()) {
    noteUse(Limit::disk, one.quota->target, static_cast<double>(one.bytes), static_cast<double>(one.quota->bytes));
    noteUse(Limit::none, "files in " + one.quota->target, static_cast<double>(one.inodes),
            static_cast<double>(one.quota->inodes));
  }
  if (!exceeded) return std::nullopt;
  why_ = std::move(exceeded->reason);
  full_ = std::move(exceeded->directory);
  return Limit::disk;
}

void LimitWatch::findFullDirectory() {
  if (!disk_) return;
  for (const DiskWatch::Fill& one : disk_->measureDirectories()) {
    // The file that was refused ends at the limit; its last block may be missing.
    if (one.bytes + policy::kMiB > one.quota->bytes) full_ = one.quota->target;
  }
}

void LimitWatch::noteCaches(milliseconds timeout) {
  if (!disk_) return;
  for (const DiskWatch::Fill& one : disk_->measureCaches(timeout)) {
    if (!one.quota->cache || (one.bytes == 0 && one.inodes == 0)) continue;
    // A cache that ended the run would end the next one too: note it as full, so that the next run starts with an empty
    // one.
    const bool full = one.quota->target == full_;
    for (const plan::Step& step : plan_.steps) {
      const auto* directory = std::get_if<plan::MountTmpfs>(&step);
      if (directory == nullptr || directory->target != one.quota->target) continue;
      noteCacheSize(*directory,
                    full ? CacheSize{directory->bytes, directory->inodes} : CacheSize{one.bytes, one.inodes});
    }
  }
}

void LimitWatch::planNext(Clock::time_point now, Clock::duration cost) {
  const bool disk = disk_ && disk_->active();
  Clock::duration wait = watches_memory_ || watches_processes_ ? kOften : kSeldom;
  if (watches_memory_ && memory_ > plan_.memory_bytes / 2) wait = kSoon;
  if (disk) wait = std::min<Clock::duration>(wait, disk_->pause());
  if (plan_.cpu_seconds) {
    // Poll again when the time could be used up at the earliest, with all processors that the sandbox may use.
    const double left = *plan_.cpu_seconds - static_cast<double>(cpu_usec_) / 1e6;
    const double cpus =
        cgroup_.enforced().cpus ? *plan_.cgroup->cpus : static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
    const auto could = microseconds(static_cast<std::int64_t>(std::max(left, 0.0) / cpus * 1e6)) + milliseconds(2);
    wait = std::min<Clock::duration>(wait, could);
    if (clock_misses_) wait = kAtOnce;
  }
  // Polling costs at most a tenth of a processor; a third on a machine so slow that the interval would become too long.
  const Clock::duration rest = std::min<Clock::duration>(cost * 10, std::max<Clock::duration>(kBlind, cost * 2));
  next_ = now + std::max(wait, rest);
}

std::optional<Limit> LimitWatch::look(Clock::time_point now) {
  if (!tree_) return std::nullopt;
  const sys::CgroupUsage counted = cgroup_.usage();
  lookAtCgroup(counted);
  std::optional<Limit> reached = lookAtTree(counted.cpu_usec.has_value());
  // v1 notifies before it kills, so the count may have been 0 then; and it leaves the other processes running.
  if (!reached && counted.oom_kills.value_or(0) > earlier_kills_) reached = Limit::memory;
  if (!reached) reached = lookAtDisk(now);
  if (plan_.cpu_seconds) {
    const double used = static_cast<double>(cpu_usec_) / 1e6;
    noteUse(Limit::cpu, "cpu time", used, *plan_.cpu_seconds);
    if (!reached && used >= *plan_.cpu_seconds) reached = Limit::cpu;
  }
  // Free space is polled at the same pace while walks are long (DiskWatch limits their share itself).
  planNext(now, Clock::now() - now - (disk_ ? disk_->lastWalk() : Clock::duration{}));
  return reached;
}

void LimitWatch::beforeTheEnd() {
  if (!tree_ || cgroup_.cpuMicroseconds()) return;
  takeCpu(tree_->look(~0ULL));
}

void LimitWatch::takeUsage(const sys::CgroupUsage& counted, Usage& usage) const {
  if (counted.cpu_user_usec && counted.cpu_system_usec) {
    // The cgroup also counts processes that were not waited for; the kernel's two ways of splitting differ slightly.
    usage.user_cpu_ms = std::max(usage.user_cpu_ms, static_cast<double>(*counted.cpu_user_usec) / 1e3);
    usage.system_cpu_ms = std::max(usage.system_cpu_ms, static_cast<double>(*counted.cpu_system_usec) / 1e3);
  }
  // Processes killed with pid 1 are missing in rusage, but not in earlier polls. On cgroup v1 the user/system split is
  // sampled by the kernel's tick; only the sum is exact.
  const double seen = static_cast<double>(std::max(cpu_usec_, counted.cpu_usec.value_or(0))) / 1e3;
  if (const double known = usage.user_cpu_ms + usage.system_cpu_ms; known < seen) usage.user_cpu_ms += seen - known;
  usage.peak_memory_bytes = counted.memory_peak.value_or(std::max(usage.peak_memory_bytes, memory_peak_));
  if (counted.pids_peak) {
    usage.processes_peak = *counted.pids_peak - std::min<std::uint64_t>(*counted.pids_peak, 1);  // without our pid 1
  } else if (processes_peak_ > 0) {
    usage.processes_peak = processes_peak_;
  }
  if (counted.io_read_bytes) usage.read_bytes = *counted.io_read_bytes;
  if (counted.io_written_bytes) usage.written_bytes = *counted.io_written_bytes;
}

void LimitWatch::finish(bool by_force, RunResult& result) {
  Usage& usage = result.usage;
  if (!cpu_layer_.empty()) result.layers["cpu"] = cpu_layer_;
  if (clock_error_)
    result.warnings.push_back("cpu time is sampled, short-lived processes can escape the limit: " +
                              clock_error_->message());
  // The clock includes processes that exited after the last poll.
  if (cpu_clock_) cpu_usec_ = std::max(cpu_usec_, static_cast<std::uint64_t>(cpu_clock_->used().count()));
  if (isLaunchersPeak(usage.peak_memory_bytes)) usage.peak_memory_bytes = memory_peak_;
  const auto near = [&](Limit limit, const std::string& what, double used, double most) {
    noteUse(limit, what, used, most);
  };
  near(Limit::memory, "memory", static_cast<double>(usage.peak_memory_bytes),  // of the largest process so far
       static_cast<double>(plan_.memory_bytes));
  const sys::CgroupUsage counted = cgroup_.totals(by_force);
  (void)lookAtSized();
  takeUsage(counted, usage);
  oom_kills_ = counted.oom_kills.value_or(0) - std::min(counted.oom_kills.value_or(0), earlier_kills_);
  if (usage.processes_peak)
    near(Limit::processes, "processes", static_cast<double>(*usage.processes_peak),
         static_cast<double>(plan_.max_tasks));
  near(Limit::cpu, "cpu time", (usage.user_cpu_ms + usage.system_cpu_ms) / 1e3, plan_.cpu_seconds.value_or(0));
  near(Limit::time, "time", usage.wall_ms / 1e3, plan_.wall_seconds.value_or(0));
  if (disk_ && plan_.disk->bytes)
    near(Limit::disk, "what was written to disk", static_cast<double>(disk_->bytes()),
         static_cast<double>(*plan_.disk->bytes));
  near(Limit::output, "stdout", static_cast<double>(result.out.data.size()), static_cast<double>(plan_.output_bytes));
  near(Limit::output, "stderr", static_cast<double>(result.err.data.size()), static_cast<double>(plan_.output_bytes));
  for (const auto& [what, note] : near_) result.warnings.push_back(note.text);
  if (const std::uint64_t refused = counted.pids_limit_hits.value_or(0); refused > 0) {
    met_processes_ = true;
    result.denials.push_back(deniedForks(refused));
  } else if (full_at_end_) {
    met_processes_ = true;
    result.denials.push_back(deniedForks(0));
  }
  if (!why_.empty()) result.notices.push_back("ended: " + why_);
}

Limit LimitWatch::met() const {
  if (met_processes_) return Limit::processes;
  return met_disk_ ? Limit::disk : Limit::none;
}

}  // namespace caisson::supervise
