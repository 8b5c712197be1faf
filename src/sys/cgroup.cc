#include "sys/cgroup.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/cgroup_files.h"

namespace caisson::sys {
namespace {

using Kind = CgroupBase::Kind;

constexpr const char* kDoctor = "run `caisson doctor`: it names what this host forbids and the remedy";

Error writeError(const std::string& directory, const char* file, std::string_view value, int error,
                 std::string_view hint = kDoctor) {
  Error failed = sysError(Stage::limits, "write", directory + "/" + file, error, hint);
  failed.reason = "writing `" + std::string(value) + "`";
  return failed;
}

/// Moves this process back to the base, if other processes turn out to live there.
void leaveLeaf(int base, const std::string& leaf) {
  (void)writeAt(base, "cgroup.procs", "0");
  (void)::unlinkat(base, leaf.c_str(), AT_REMOVEDIR);
}

/// cgroup v2 forbids processes in a cgroup whose children have controllers ("no internal processes"): moves this
/// process into a leaf, if it is the only one in the base.
Result<void> moveToLeaf(const CgroupBase::Directory& base, const std::string& leaf) {
  const int fd = base.fd.get();
  const auto members = membersOf(fd);
  const pid_t self = ::getpid();
  if (!members) return fail(sysError(Stage::limits, "read", base.path + "/cgroup.procs", errno));
  if (std::ranges::find(*members, self) == members->end()) return {};  // an earlier create() moved it
  const char* hint = "start caisson with `systemd-run --user --scope -p Delegate=yes`";
  if (!holdsOnly(fd, self))
    return fail(plainError(Stage::limits, "enter leaf", base.path, "other processes have joined our cgroup", hint));
  if (::mkdirat(fd, leaf.c_str(), 0755) != 0 && errno != EEXIST)
    return fail(sysError(Stage::limits, "mkdir", base.path + "/" + leaf, errno, hint));
  const Fd inside = openDirectoryAt(fd, leaf.c_str());
  const int error = inside ? writeAt(inside.get(), "cgroup.procs", "0") : errno;
  if (error != 0) {
    (void)::unlinkat(fd, leaf.c_str(), AT_REMOVEDIR);
    return fail(writeError(base.path + "/" + leaf, "cgroup.procs", "0", error, hint));
  }
  if (!holdsOnly(fd, -1)) {
    leaveLeaf(fd, leaf);
    return fail(plainError(Stage::limits, "enter leaf", base.path, "other processes have joined our cgroup", hint));
  }
  return {};
}

/// Enables what find() reported as usable. A second call does nothing.
Result<void> prepare(const CgroupBase& base, const CgroupName& maker) {
  if (base.kind != Kind::v2 || (!base.needs_leaf && !any(base.to_enable))) return {};
  const CgroupBase::Directory& directory = base.directories.front();
  if (base.needs_leaf) {
    CgroupName leaf = maker;
    leaf.id = kSupervisorLeaf;
    if (auto moved = moveToLeaf(directory, formatCgroupName(leaf)); !moved) return moved;
  }
  const CgroupControllers missing =
      base.to_enable - parseControllers(readAt(directory.fd.get(), "cgroup.subtree_control").value_or(""), ' ');
  struct {
    bool wanted;
    const char* word;
  } const each[] = {{missing.memory, "+memory"},
                    {missing.pids, "+pids"},
                    {missing.cpu, "+cpu"},
                    {missing.cpuset, "+cpuset"},
                    {missing.io, "+io"}};
  // One write per controller: the kernel rejects the whole line for one bad controller. A failure only matters if a
  // limit needs the controller, and shows there as a missing file.
  for (const auto& [wanted, word] : each) {
    if (wanted) (void)writeAt(directory.fd.get(), "cgroup.subtree_control", word);
  }
  return {};
}

bool wantsIo(const CgroupLimits& limits) {
  return !limits.io_disks.empty() && (limits.io_rbps || limits.io_wbps || limits.io_riops || limits.io_wiops);
}

/// Whether a limit needs this v1 directory. Only such directories are made: each costs some 40 us to make and remove.
bool needed(const CgroupBase::Directory& directory, const CgroupLimits& limits) {
  return (directory.offers.memory && limits.memory) || (directory.offers.pids && limits.pids) ||
         (directory.offers.cpu && limits.cpus) || (directory.offers.cpuset && !limits.cpuset.empty()) ||
         (directory.offers.io && wantsIo(limits)) || (directory.accounts_cpu && limits.account_cpu);
}

std::string diskName(dev_t disk) { return std::to_string(major(disk)) + ":" + std::to_string(minor(disk)); }

/// Writes the limits of one directory in order; keeps the first failure.
class Writer {
 public:
  Writer(int directory, const std::string& path) : directory_(directory), path_(path) {}

  /// True if the kernel accepted the value.
  bool must(const char* file, std::string_view value, std::string_view hint = kDoctor) {
    if (!result_) return false;
    if (const int error = writeAt(directory_, file, value); error != 0) {
      result_ = fail(writeError(path_, file, value, error, hint));
      return false;
    }
    return true;
  }
  /// The same for files that may be missing or read-only on some kernels: a failure is not kept.
  bool may(const char* file, std::string_view value) { return result_ && writeAt(directory_, file, value) == 0; }

  void refuse(Error error) {
    if (result_) result_ = fail(std::move(error));
  }
  [[nodiscard]] Result<void> take() { return std::move(result_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int directory() const { return directory_; }

 private:
  int directory_;
  const std::string& path_;
  Result<void> result_;
};

constexpr const char* kCpuHint = "name CPUs that this host has and this process may use: `nproc`, `taskset -p $$`";

void limitCpusetV2(Writer& to, const CgroupLimits& limits, CgroupEnforced& enforced) {
  const std::string wanted = formatCpuList(limits.cpuset);
  if (!to.must("cpuset.cpus", wanted, kCpuHint)) return;
  // The kernel accepts CPUs that the parent lacks, and then silently uses the parent's.
  std::string effective = readAt(to.directory(), "cpuset.cpus.effective").value_or("");
  while (effective.ends_with('\n')) effective.pop_back();
  enforced.cpuset = effective == wanted;
  if (!enforced.cpuset)
    to.refuse(plainError(Stage::limits, "cpuset", to.path(),
                         "asked for CPUs " + wanted + ", but only " + effective + " would be in force", kCpuHint));
}

void limitIoV2(Writer& to, const CgroupLimits& limits, CgroupEnforced& enforced) {
  std::string line;
  const auto append = [&](const char* key, const std::optional<std::uint64_t>& value) {
    if (value) line.append(" ").append(key).append("=").append(std::to_string(*value));
  };
  append("rbps", limits.io_rbps);
  append("wbps", limits.io_wbps);
  append("riops", limits.io_riops);
  append("wiops", limits.io_wiops);
  enforced.io = true;
  for (const dev_t disk : limits.io_disks) enforced.io = to.must("io.max", diskName(disk) + line) && enforced.io;
}

void limitV2(Writer& to, const CgroupControllers& has, const CgroupLimits& limits, CgroupEnforced& enforced) {
  if (has.memory && limits.memory) {
    enforced.memory = to.must("memory.max", std::to_string(*limits.memory));
    enforced.swap = to.may("memory.swap.max", std::to_string(limits.swap));
    enforced.oom_group = to.may("memory.oom.group", "1");
  }
  if (has.memory && limits.memory_low) enforced.memory_low = to.must("memory.low", std::to_string(*limits.memory_low));
  if (has.pids && limits.pids) enforced.pids = to.must("pids.max", std::to_string(*limits.pids));
  if (has.cpu && limits.cpus) {
    const std::uint64_t quota = *cpuQuota(*limits.cpus);
    enforced.cpus = to.must("cpu.max", std::to_string(quota) + " " + std::to_string(kCpuPeriodUsec));
  }
  if (has.cpuset && !limits.cpuset.empty()) limitCpusetV2(to, limits, enforced);
  if (has.io && wantsIo(limits)) limitIoV2(to, limits, enforced);
}

void limitMemoryV1(Writer& to, const CgroupLimits& limits, CgroupEnforced& enforced) {
  enforced.memory = to.must("memory.limit_in_bytes", std::to_string(*limits.memory));
  // Memory plus swap. Must not be below the memory limit, so it is written second. Missing without swap accounting.
  std::uint64_t both = 0;
  if (__builtin_add_overflow(*limits.memory, limits.swap, &both)) both = *limits.memory;
  enforced.swap = to.may("memory.memsw.limit_in_bytes", std::to_string(both));
  if (limits.swap == 0 && !enforced.swap) (void)to.may("memory.swappiness", "0");
  // The limit above does not include TCP socket buffers; the kernel accounts them only if they have a limit.
  (void)to.may("memory.kmem.tcp.limit_in_bytes", std::to_string(*limits.memory));
}

/// Sets both files of a v1 cpuset, also without a limit: a new one is empty, and no process can enter it.
void limitCpusetV1(Writer& to, int parent, const CgroupLimits& limits, CgroupEnforced& enforced) {
  std::string cpus = formatCpuList(limits.cpuset);
  if (cpus.empty()) cpus = readAt(parent, "cpuset.cpus").value_or("");
  to.must("cpuset.mems", readAt(parent, "cpuset.mems").value_or(""));
  enforced.cpuset = to.must("cpuset.cpus", cpus, kCpuHint) && !limits.cpuset.empty();
}

void limitIoV1(Writer& to, const CgroupLimits& limits, CgroupEnforced& enforced) {
  enforced.io = true;
  const auto write = [&](const char* file, const std::optional<std::uint64_t>& value) {
    if (!value) return;
    for (const dev_t disk : limits.io_disks)
      enforced.io = to.must(file, diskName(disk) + " " + std::to_string(*value)) && enforced.io;
  };
  write("blkio.throttle.read_bps_device", limits.io_rbps);
  write("blkio.throttle.write_bps_device", limits.io_wbps);
  write("blkio.throttle.read_iops_device", limits.io_riops);
  write("blkio.throttle.write_iops_device", limits.io_wiops);
}

void limitV1(Writer& to, int parent, const CgroupControllers& has, const CgroupLimits& limits,
             CgroupEnforced& enforced) {
  if (has.memory && limits.memory) limitMemoryV1(to, limits, enforced);
  if (has.pids && limits.pids) enforced.pids = to.must("pids.max", std::to_string(*limits.pids));
  if (has.cpu && limits.cpus) {
    static_assert(kCpuPeriodUsec == 100'000, "what a new cgroup begins with: it need not be written");
    enforced.cpus = to.must("cpu.cfs_quota_us", std::to_string(*cpuQuota(*limits.cpus)));
  }
  if (has.cpuset) limitCpusetV1(to, parent, limits, enforced);
  if (has.io && wantsIo(limits)) limitIoV1(to, limits, enforced);
}

}  // namespace

Result<Cgroup> Cgroup::create(const CgroupBase& base, std::string_view name, const CgroupLimits& limits) {
  if (base.kind == Kind::none) return fail(plainError(Stage::limits, "cgroup", name, base.why_not, kDoctor));
  if (!isCgroupId(name))
    return fail(plainError(Stage::limits, "cgroup", name, "not a name: letters, digits, `_-.`, 128 at most"));
  if (limits.cpus && !cpuQuota(*limits.cpus))
    return fail(plainError(Stage::limits, "cgroup", "cpus", "not a share of CPUs above zero"));
  Cgroup cgroup;
  cgroup.kind_ = base.kind;
  // After a fork, directories must carry the child's own pid, not its parent's.
  CgroupName maker = parseCgroupName(base.maker + "x").value_or(CgroupName{});
  if (base.maker_pid != ::getpid()) maker = ownCgroupName();
  if (auto prepared = prepare(base, maker); !prepared) return fail(prepared.error());
  maker.id = name;
  cgroup.name_ = formatCgroupName(maker);
  // On failure the destructor removes what was made.
  if (auto made = cgroup.make(base, limits); !made) return fail(made.error());
  if (auto set = cgroup.setLimits(limits); !set) return fail(set.error());
  if (base.kind == Kind::v1) {
    if (auto opened = cgroup.openEntries(); !opened) return fail(opened.error());
  }
  return cgroup;
}

Result<void> Cgroup::make(const CgroupBase& base, const CgroupLimits& limits) {
  directories_.reserve(base.directories.size());
  for (const CgroupBase::Directory& directory : base.directories) {
    if (base.kind == Kind::v1 && !needed(directory, limits)) continue;
    Part part{.parent = Fd(::fcntl(directory.fd.get(), F_DUPFD_CLOEXEC, 3)),
              .path = directory.path + "/" + name_,
              .has = directory.offers,
              .accounts_cpu = directory.accounts_cpu};
    if (!part.parent)
      return fail(sysError(Stage::limits, "dup", directory.path, errno, "raise the limit on open files"));
    if (::mkdirat(part.parent.get(), name_.c_str(), 0755) != 0)
      return fail(sysError(Stage::limits, "mkdir", part.path, errno, kDoctor));
    part.fd = openDirectoryAt(part.parent.get(), name_.c_str());
    const int error = errno;
    directories_.push_back(std::move(part));
    if (!directories_.back().fd) return fail(sysError(Stage::limits, "open", directories_.back().path, error));
  }
  return {};
}

Result<void> Cgroup::setLimits(const CgroupLimits& limits) {
  memory_limit_ = limits.memory.value_or(0);
  pids_limit_ = limits.pids.value_or(0);
  for (const Part& part : directories_) {
    Writer writer(part.fd.get(), part.path);
    if (kind_ == Kind::v2) {
      limitV2(writer, part.has, limits, enforced_);
    } else {
      limitV1(writer, part.parent.get(), part.has, limits, enforced_);
    }
    if (auto set = writer.take(); !set) return set;
  }
  return {};
}

const Cgroup::Part* Cgroup::part(bool CgroupControllers::* controller) const {
  const auto found = std::ranges::find_if(directories_, [&](const Part& part) { return part.has.*controller; });
  return found == directories_.end() ? nullptr : &*found;
}

int Cgroup::descriptor() const { return kind_ == Kind::v2 && valid() ? directories_.front().fd.get() : -1; }

Result<void> Cgroup::openEntries() {
  closeEntries();
  // v1: writing to `tasks` moves only the writing thread and skips the host-wide fork/exit lock that cgroup.procs takes
  // (a grace period: 5 to 15 ms). v2 domains only have cgroup.procs.
  const char* file = kind_ == Kind::v1 ? "tasks" : "cgroup.procs";
  for (const Part& part : directories_) {
    Fd fd(::openat(part.fd.get(), file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd.valid() && fd.get() <= 2) fd = Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    if (!fd) return fail(sysError(Stage::limits, "open", part.path + "/" + file, errno, kDoctor));
    entry_numbers_.push_back(fd.get());
    entries_.push_back(std::move(fd));
  }
  return {};
}

void Cgroup::closeEntries() {
  entries_.clear();
  entry_numbers_.clear();
}

Result<void> Cgroup::add(pid_t pid) const {
  const std::string value = std::to_string(pid);
  if (pid <= 0) return fail(plainError(Stage::limits, "cgroup.procs", value, "not a pid"));
  for (const Part& part : directories_) {
    if (const int error = writeAt(part.fd.get(), "cgroup.procs", value); error != 0)
      return fail(writeError(part.path, "cgroup.procs", value, error));
  }
  return {};
}

Fd Cgroup::oomEvents() const {
  const Part* memory = part(&CgroupControllers::memory);
  if (memory == nullptr) return {};
  if (kind_ == Kind::v2) {
    Fd events(::openat(memory->fd.get(), "memory.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    char buffer[512];
    if (events && ::read(events.get(), buffer, sizeof(buffer)) < 0) return {};  // arms poll
    return events;
  }
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const Fd control(::openat(memory->fd.get(), "memory.oom_control", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!event || !control) return {};
  const std::string line = std::to_string(event.get()) + " " + std::to_string(control.get());
  if (writeAt(memory->fd.get(), "cgroup.event_control", line) != 0) return {};
  return event;
}

std::optional<dev_t> diskOf(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || major(status.st_dev) == 0) return std::nullopt;
  const std::string device = "/sys/dev/block/" + diskName(status.st_dev);
  if (::faccessat(AT_FDCWD, device.c_str(), F_OK, 0) != 0) return std::nullopt;
  if (::faccessat(AT_FDCWD, (device + "/partition").c_str(), F_OK, 0) != 0) return status.st_dev;
  // The link leads to the partition's directory, whose parent is the disk's.
  const std::string text = readAt(AT_FDCWD, (device + "/../dev").c_str()).value_or("");
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto high = parseCount(std::string_view(text).substr(0, colon));
  const auto low = parseCount(std::string_view(text).substr(colon + 1));
  if (!high || !low) return std::nullopt;
  return makedev(static_cast<unsigned>(*high), static_cast<unsigned>(*low));
}

}  // namespace caisson::sys
