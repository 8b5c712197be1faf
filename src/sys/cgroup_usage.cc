// What a sandbox's tree used. Every file may be missing: kernels differ, controllers may be off.
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

void readPids(int directory, CgroupUsage& usage) {
  usage.pids_current = countIn(directory, "pids.current");
  usage.pids_peak = countIn(directory, "pids.peak");  // Linux 6.1
  usage.pids_limit_hits = keyedIn(directory, "pids.events", "max");
}

}  // namespace

CgroupUsage Cgroup::usage() const {
  switch (kind_) {
    case CgroupBase::Kind::none: return {};
    case CgroupBase::Kind::v1: return usageV1();
    case CgroupBase::Kind::v2: return usageV2();
  }
  return {};
}

std::uint64_t Cgroup::pageCache() const {
  const Part* memory = part(&CgroupControllers::memory);
  const auto stat = memory != nullptr ? readAt(memory->fd.get(), "memory.stat") : std::nullopt;
  if (!stat) return 0;
  const bool v1 = kind_ == CgroupBase::Kind::v1;
  const std::uint64_t files = parseKeyed(*stat, v1 ? "total_cache" : "file").value_or(0);
  // Both kernels count memory of tmpfs as file pages; that cannot be given back.
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

CgroupUsage Cgroup::usageV2() const {
  CgroupUsage usage;
  if (!valid()) return usage;
  const int directory = directories_.front().fd.get();
  const CgroupControllers& has = directories_.front().has;
  if (has.memory) {
    usage.memory_current = countIn(directory, "memory.current");
    usage.memory_peak = countIn(directory, "memory.peak");  // Linux 5.19
    if (const auto events = readAt(directory, "memory.events")) {
      usage.oom_kills = parseKeyed(*events, "oom_kill");
      usage.memory_limit_hits = parseKeyed(*events, "max");
    }
  }
  if (has.pids) readPids(directory, usage);
  if (const auto cpu = readAt(directory, "cpu.stat")) {  // the times are there without the controller
    usage.cpu_usec = parseKeyed(*cpu, "usage_usec");
    usage.cpu_user_usec = parseKeyed(*cpu, "user_usec");
    usage.cpu_system_usec = parseKeyed(*cpu, "system_usec");
    usage.cpu_throttled_periods = parseKeyed(*cpu, "nr_throttled");
    usage.cpu_throttled_usec = parseKeyed(*cpu, "throttled_usec");
  }
  if (has.io) {
    if (const auto io = readAt(directory, "io.stat")) {
      usage.io_read_bytes = sumIoStat(*io, "rbytes");
      usage.io_written_bytes = sumIoStat(*io, "wbytes");
    }
  }
  return usage;
}

CgroupUsage Cgroup::usageV1() const {
  CgroupUsage usage;
  if (const Part* memory = part(&CgroupControllers::memory)) {
    const int directory = memory->fd.get();
    usage.memory_current = countIn(directory, "memory.usage_in_bytes");
    usage.memory_peak = countIn(directory, "memory.max_usage_in_bytes");
    // Without swap both limits are the same number, the one over memory and swap is asked first, and new kernels (seen
    // on 6.18) count no failures of that one: 0 says little here.
    usage.memory_limit_hits = countIn(directory, "memory.failcnt");
    if (usage.memory_limit_hits) *usage.memory_limit_hits += countIn(directory, "memory.memsw.failcnt").value_or(0);
    usage.oom_kills = keyedIn(directory, "memory.oom_control", "oom_kill");  // Linux 4.13
  }
  if (const Part* pids = part(&CgroupControllers::pids)) readPids(pids->fd.get(), usage);
  if (const Part* cpu = part(&CgroupControllers::cpu)) {
    if (const auto stat = readAt(cpu->fd.get(), "cpu.stat")) {
      usage.cpu_throttled_periods = parseKeyed(*stat, "nr_throttled");
      usage.cpu_throttled_usec = divided(parseKeyed(*stat, "throttled_time"), 1000);
    }
  }
  for (const Part& one : directories_) {
    if (!one.accounts_cpu) continue;
    usage.cpu_usec = divided(countIn(one.fd.get(), "cpuacct.usage"), 1000);
    usage.cpu_user_usec = divided(countIn(one.fd.get(), "cpuacct.usage_user"), 1000);
    usage.cpu_system_usec = divided(countIn(one.fd.get(), "cpuacct.usage_sys"), 1000);
  }
  if (const Part* io = part(&CgroupControllers::io)) {
    if (const auto bytes = readAt(io->fd.get(), "blkio.throttle.io_service_bytes_recursive")) {
      usage.io_read_bytes = sumBlkio(*bytes, "Read");
      usage.io_written_bytes = sumBlkio(*bytes, "Write");
    }
  }
  return usage;
}

}  // namespace caisson::sys
