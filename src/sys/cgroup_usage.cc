// Resource usage of a sandbox's process tree. Every file may be missing: kernels differ, controllers may be off.
#include <fcntl.h>

#include <algorithm>

#include "sys/cgroup.h"
#include "sys/cgroup_files.h"

namespace caisson::sys {
namespace {

std::optional<std::uint64_t> countIn(int directory, const char* file) {
  const auto text = readAt(directory, file);
  return text ? parseCount(*text) : std::nullopt;
}

std::optional<std::uint64_t> keyedIn(int directory, const char* file, std::string_view key) {
  const auto text = readAt(directory, file);
  return text ? parseKeyed(*text, key) : std::nullopt;
}

std::optional<std::uint64_t> divided(std::optional<std::uint64_t> value, std::uint64_t by) {
  if (value) *value /= by;
  return value;
}

/// The kernel charges memory in batches of up to some megabytes, so a limit may be hit that far below it.
constexpr std::uint64_t kLargestPiece = 16U << 20;

bool nearLimit(std::optional<std::uint64_t> peak, std::uint64_t limit) {
  return !peak || limit == 0 || *peak >= limit / 2 || *peak + kLargestPiece >= limit;
}

}  // namespace

const char* Cgroup::oomFile() const {
  return kind_ == CgroupBase::Kind::v1 ? "memory.oom_control" : "memory.events";  // Linux 4.13; 4.19
}

std::optional<std::uint64_t> Cgroup::oomKills() const {
  const Part* memory = part(&CgroupControllers::memory);
  return memory != nullptr ? keyedIn(memory->fd.get(), oomFile(), "oom_kill") : std::nullopt;
}

std::optional<std::uint64_t> Cgroup::deniedForks() const {
  const Part* pids = part(&CgroupControllers::pids);
  return pids != nullptr ? keyedIn(pids->fd.get(), "pids.events", "max") : std::nullopt;
}

void Cgroup::addCpuTimes(CgroupUsage& usage) const {
  if (kind_ == CgroupBase::Kind::v2) {
    if (const auto cpu = readAt(directories_.front().fd.get(), "cpu.stat")) {  // present without a cpu controller, too
      usage.cpu_usec = parseKeyed(*cpu, "usage_usec");
      usage.cpu_user_usec = parseKeyed(*cpu, "user_usec");
      usage.cpu_system_usec = parseKeyed(*cpu, "system_usec");
      usage.cpu_throttled_periods = parseKeyed(*cpu, "nr_throttled");
      usage.cpu_throttled_usec = parseKeyed(*cpu, "throttled_usec");
    }
    return;
  }
  for (const Part& one : directories_) {
    if (!one.accounts_cpu) continue;
    usage.cpu_usec = divided(countIn(one.fd.get(), "cpuacct.usage"), 1000);
    usage.cpu_user_usec = divided(countIn(one.fd.get(), "cpuacct.usage_user"), 1000);
    usage.cpu_system_usec = divided(countIn(one.fd.get(), "cpuacct.usage_sys"), 1000);
  }
}

std::optional<std::uint64_t> Cgroup::cpuMicroseconds() const {
  CgroupUsage usage;
  if (valid()) addCpuTimes(usage);
  return usage.cpu_usec;
}

void Cgroup::addIo(CgroupUsage& usage) const {
  const Part* io = part(&CgroupControllers::io);
  if (io == nullptr) return;
  const bool v1 = kind_ == CgroupBase::Kind::v1;
  const auto text = readAt(io->fd.get(), v1 ? "blkio.throttle.io_service_bytes_recursive" : "io.stat");
  if (!text) return;
  usage.io_read_bytes = v1 ? sumBlkio(*text, "Read") : sumIoStat(*text, "rbytes");
  usage.io_written_bytes = v1 ? sumBlkio(*text, "Write") : sumIoStat(*text, "wbytes");
}

CgroupUsage Cgroup::totals(bool suspicious) const {
  CgroupUsage usage;
  if (!valid()) return usage;
  const bool v1 = kind_ == CgroupBase::Kind::v1;
  if (const Part* memory = part(&CgroupControllers::memory)) {
    usage.memory_peak = countIn(memory->fd.get(), v1 ? "memory.max_usage_in_bytes" : "memory.peak");  // v2: Linux 5.19
    if (suspicious || nearLimit(usage.memory_peak, memory_limit_)) usage.oom_kills = oomKills();
  }
  if (const Part* pids = part(&CgroupControllers::pids)) {
    usage.pids_peak = countIn(pids->fd.get(), "pids.peak");  // Linux 6.1
    if (!usage.pids_peak || *usage.pids_peak >= pids_limit_) usage.pids_limit_hits = deniedForks();
  }
  addCpuTimes(usage);
  addIo(usage);
  return usage;
}

CgroupUsage Cgroup::usage() const {
  CgroupUsage usage = totals(true);
  const bool v1 = kind_ == CgroupBase::Kind::v1;
  if (const Part* memory = part(&CgroupControllers::memory)) {
    const int directory = memory->fd.get();
    usage.memory_current = countIn(directory, v1 ? "memory.usage_in_bytes" : "memory.current");
    // v1 without swap: both limits have the same value, the kernel checks the one for memory plus swap first, and newer
    // kernels (seen on 6.18) count no failures of it. So 0 does not prove that no limit was hit.
    usage.memory_limit_hits = v1 ? countIn(directory, "memory.failcnt") : keyedIn(directory, "memory.events", "max");
    if (v1 && usage.memory_limit_hits)
      *usage.memory_limit_hits += countIn(directory, "memory.memsw.failcnt").value_or(0);
  }
  if (const Part* pids = part(&CgroupControllers::pids)) {
    usage.pids_current = countIn(pids->fd.get(), "pids.current");
    usage.pids_limit_hits = deniedForks();
  }
  if (const Part* cpu = v1 ? part(&CgroupControllers::cpu) : nullptr) {
    if (const auto stat = readAt(cpu->fd.get(), "cpu.stat")) {
      usage.cpu_throttled_periods = parseKeyed(*stat, "nr_throttled");
      usage.cpu_throttled_usec = divided(parseKeyed(*stat, "throttled_time"), 1000);
    }
  }
  return usage;
}

std::uint64_t Cgroup::pageCache() const {
  const Part* memory = part(&CgroupControllers::memory);
  const auto stat = memory != nullptr ? readAt(memory->fd.get(), "memory.stat") : std::nullopt;
  if (!stat) return 0;
  const bool v1 = kind_ == CgroupBase::Kind::v1;
  const std::uint64_t files = parseKeyed(*stat, v1 ? "total_cache" : "file").value_or(0);
  // Both versions count tmpfs memory as file pages, but it cannot be reclaimed.
  const std::uint64_t shared = parseKeyed(*stat, v1 ? "total_shmem" : "shmem").value_or(0);
  return files > shared ? files - shared : 0;
}

std::uint64_t oomKillsOf(const std::vector<std::string>& directories) {
  std::uint64_t kills = 0;
  for (const std::string& path : directories) {
    const Fd directory = openDirectoryAt(AT_FDCWD, path.c_str());
    if (!directory) continue;
    for (const char* file : {"memory.events", "memory.oom_control"}) {
      kills = std::max(kills, keyedIn(directory.get(), file, "oom_kill").value_or(0));
    }
  }
  return kills;
}

}  // namespace caisson::sys
