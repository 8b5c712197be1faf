#include "supervise/processes/process_tree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "supervise/processes/proc_text.h"
#include "sys/fd.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using sys::Fd;

// Bounds a poll, far above what RLIMIT_NPROC lets a payload have: a process that is not listed has no limit.
constexpr std::size_t kMaxProcesses = 1U << 17;
constexpr std::size_t kMaxDescriptors = 65536;

// Kernel memory behind descriptors, which no memory statistic of a process includes. The first 256 sockets of a process
// are free, since so many are ordinary; each further one counts as its maximum buffers.
constexpr std::uint64_t kFreeSockets = 256;
constexpr std::uint64_t kPerSocket = 208 * 1024, kPerOther = 1024;
// A pipe holds 64 KiB until its user has 64 MiB in pipes, then a page or two (fs.pipe-user-pages-soft).
constexpr std::uint64_t kPerPipeEnd = 32 * 1024, kPipesInFull = 64 * 1024 * 1024, kPerLaterPipeEnd = 4 * 1024;
constexpr std::uint64_t kPerThread = 24 * 1024;  // kernel stack and task structure

void addChildren(pid_t pid, int thread, std::vector<pid_t>& to) {
  char path[80];
  std::snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, thread);
  const std::string text = readFile(path);
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    pid_t child = 0;
    const auto [stop, error] = std::from_chars(at, end, child);
    if (error == std::errc() && child > 0) to.push_back(child);
    at = std::max(stop, at + 1);
  }
}

struct Behind {
  std::uint64_t kernel = 0, memfds = 0;
};
using Inodes = std::set<std::pair<dev_t, ino_t>>;

std::uint64_t inPipes(std::uint64_t ends) {
  return std::min(ends * kPerPipeEnd, kPipesInFull + ends * kPerLaterPipeEnd);
}

std::uint64_t beyondFree(std::uint64_t count) { return count > kFreeSockets ? count - kFreeSockets : 0; }

/// Sockets of the tree in whose queues descriptors are in flight.
class QueueFinder {
 public:
  /// `target` is the text of the descriptor's link: "socket:[4711]". Processes share sockets; each is checked once.
  void add(pid_t pid, int number, std::string_view target) {
    if (!seen_.insert(std::string(target)).second) return;
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, number);
    if (sys::parseQueued(readFile(path)) > 0) found_.push_back({pid, number});
  }
  [[nodiscard]] const std::vector<sys::SocketOf>& found() const { return found_; }

 private:
  std::set<std::string> seen_;
  std::vector<sys::SocketOf> found_;
};

struct DescriptorCounts {
  std::uint64_t sockets = 0, pipes = 0, others = 0;
  [[nodiscard]] std::uint64_t kernelBytes() const {
    return beyondFree(sockets) * kPerSocket + inPipes(pipes) + others * kPerOther;
  }
};

std::uint64_t mountOf(std::string_view fdinfo) { return parseNumber(fdinfo, "mnt_id"); }

/// The mounts that the kernel keeps for files without a name, by the number that fdinfo gives.
struct NamelessMounts {
  std::uint64_t sockets = 0, pipes = 0, memfds = 0;

  static NamelessMounts find() {
    int ends[2] = {-1, -1};
    (void)!::pipe2(ends, O_CLOEXEC);
    const Fd pipe(ends[0]), other(ends[1]);
    const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)), memfd(::memfd_create("", MFD_CLOEXEC));
    const auto number = [](const Fd& file) {
      char path[64];
      std::snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file.get());
      return mountOf(readFile(path));
    };
    return {number(socket), number(pipe), number(memfd)};
  }
};

/// What the descriptors of a process keep in memory whose `fd` directory is closed to us: one that made itself
/// undumpable, or that has another user id. We own its user namespace, so its fdinfo is open.
Behind behindHiddenDescriptors(pid_t pid, Inodes& seen, QueueFinder& queues) {
  Behind behind;
  const std::vector<int> numbers = numbersIn(pid, "fdinfo", kMaxDescriptors);
  if (numbers.empty()) return behind;  // a zombie
  static const NamelessMounts mounts = NamelessMounts::find();
  DescriptorCounts counts;
  Fd process;
  for (const int number : numbers) {
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, number);
    const std::string info = readFile(path);
    const std::uint64_t mount = mountOf(info);
    ++(mount == mounts.sockets ? counts.sockets : mount == mounts.pipes ? counts.pipes : counts.others);
    if (mount == mounts.sockets) queues.add(pid, number, "socket:[" + std::to_string(parseNumber(info, "ino")) + "]");
    if (mount != mounts.memfds) continue;
    // A copy of a memfd, unlike one of a socket, can be closed without waiting for anything.
    if (!process) process = Fd(static_cast<int>(sys::raw(SYS_pidfd_open, pid, 0)));
    const Fd copy(process ? static_cast<int>(sys::raw(SYS_pidfd_getfd, process.get(), number, 0)) : -1);
    struct stat status{};
    if (!copy || ::fstat(copy.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (seen.emplace(status.st_dev, status.st_ino).second)
      behind.memfds += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  behind.kernel = counts.kernelBytes();
  return behind;
}

/// What the descriptors of one process keep in memory.
Behind behindDescriptors(pid_t pid, Inodes& seen, QueueFinder& queues) {
  Behind behind;
  char path[64];
  DescriptorCounts counts;
  const std::vector<int> numbers = numbersIn(pid, "fd", kMaxDescriptors);
  if (numbers.empty()) return behindHiddenDescriptors(pid, seen, queues);
  for (const int number : numbers) {
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
    char target[32];  // the beginning of a path is enough
    const ssize_t length = ::readlink(path, target, sizeof(target));
    const std::string_view kind(target, length > 0 ? static_cast<std::size_t>(length) : 0);
    ++(kind.starts_with("socket:") ? counts.sockets : kind.starts_with("pipe:") ? counts.pipes : counts.others);
    if (kind.starts_with("socket:")) queues.add(pid, number, kind);
    struct stat status{};
    if (!kind.starts_with("/memfd:") || ::stat(path, &status) != 0) continue;
    if (seen.emplace(status.st_dev, status.st_ino).second)
      behind.memfds += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  behind.kernel = counts.kernelBytes();
  return behind;
}

/// Memory of one process: private with page tables and swap, and mapped shared memory.
struct HeldMemory {
  std::uint64_t own = 0, mapped = 0;
};

/// Memory of a process from /proc/PID/status, in which each process counts shared pages completely.
HeldMemory estimate(pid_t pid) {
  const std::string status = readFile(pid, "status");
  return {parseKilobytes(status, "RssAnon") + parseKilobytes(status, "VmPTE") + parseKilobytes(status, "VmSwap"),
          parseKilobytes(status, "RssShmem")};
}

/// The same from smaps_rollup, with each shared page divided among its processes. `otherwise` if that is not readable.
HeldMemory proportional(pid_t pid, HeldMemory otherwise) {
  const std::string rollup = readFile(pid, "smaps_rollup");
  if (rollup.empty()) return otherwise;
  return {parseKilobytes(rollup, "Pss_Anon") + parseKilobytes(rollup, "SwapPss") +
              parseKilobytes(readFile(pid, "status"), "VmPTE"),
          parseKilobytes(rollup, "Pss_Shmem")};
}

}  // namespace

std::optional<ProcessTimes> parseProcessTimes(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');  // the name may contain spaces and brackets
  if (name_end == std::string_view::npos) return std::nullopt;
  ProcessTimes times;
  int field = 2;
  for (const char *at = stat.data() + name_end + 1, *end = stat.data() + stat.size(); at < end;) {
    while (at < end && *at == ' ') ++at;
    const char* stop = std::find(at, end, ' ');
    ++field;
    std::int64_t value = 0;
    if (field >= 14 && field <= 20) {
      if (std::from_chars(at, stop, value).ptr != stop || value < 0) return std::nullopt;
      if (field <= 17) times.ticks += static_cast<std::uint64_t>(value);
      if (field == 20) {
        times.threads = static_cast<std::uint64_t>(value);
        return times;
      }
    }
    at = stop;
  }
  return std::nullopt;
}

std::uint64_t parseNumber(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    std::uint64_t value = 0;
    std::from_chars(line.begin(), line.end(), value);
    return value;
  }
  return 0;
}

std::uint64_t parseKilobytes(std::string_view text, std::string_view key) { return parseNumber(text, key) * 1024; }

std::vector<pid_t> ProcessTree::members() const {
  std::vector<pid_t> found{init_};
  for (std::size_t at = 0; at < found.size() && found.size() < kMaxProcesses; ++at) {
    // Children are listed under the thread that created them.
    for (const int thread : numbersIn(found[at], "task", kMaxProcesses)) addChildren(found[at], thread, found);
  }
  return found;
}

ProcessTree::InFlightUse ProcessTree::lookInFlight(std::span<const sys::SocketOf> sockets,
                                                   const std::set<Inode>& elsewhere) {
  using Kind = sys::InFlightFile::Kind;
  const sys::InFlight found = sys::filesInFlight(sockets);
  // If the list is incomplete, those of the previous poll are assumed to be still in flight.
  if (found.complete) in_flight_.clear();
  std::set<Inode> others;
  std::uint64_t waiting_sockets = 0, waiting_pipes = 0;
  for (const sys::InFlightFile& file : found.files) {
    const Inode inode(file.device, file.inode);
    if (file.kind == Kind::memfd) in_flight_[inode] = file.bytes;
    if (file.kind == Kind::memfd || !others.insert(inode).second) continue;
    if (file.kind == Kind::socket) ++waiting_sockets;
    if (file.kind == Kind::pipe) ++waiting_pipes;
  }
  InFlightUse use;
  use.kernel = beyondFree(waiting_sockets) * kPerSocket + inPipes(waiting_pipes) + found.files.size() * kPerOther;
  for (const auto& [inode, bytes] : in_flight_) {
    if (!elsewhere.contains(inode)) use.memfds += bytes;
  }
  return use;
}

TreeUsage ProcessTree::look(std::uint64_t precise_above) {
  TreeUsage usage;
  std::uint64_t ticks = 0, kernel = 0;
  Inodes seen;
  const std::vector<pid_t> pids = members();
  std::vector<std::pair<pid_t, HeldMemory>> held;
  QueueFinder queues;
  for (const pid_t pid : pids) {
    const auto times = parseProcessTimes(readFile(pid, "stat"));
    if (!times) continue;  // exited meanwhile; its parent has its usage now
    ticks += times->ticks;
    if (pid == init_) continue;
    ++usage.processes;
    usage.threads += std::max<std::uint64_t>(times->threads, 1);  // a zombie has none left but counts
    held.emplace_back(pid, estimate(pid));
    usage.memory += held.back().second.own;
    usage.mapped += held.back().second.mapped;
    const Behind behind = behindDescriptors(pid, seen, queues);
    kernel += behind.kernel;
    usage.memfds += behind.memfds;
  }
  const InFlightUse in_flight = lookInFlight(queues.found(), seen);
  kernel += in_flight.kernel + usage.threads * kPerThread;
  usage.memfds += in_flight.memfds;
  if (usage.memory + usage.mapped + kernel > precise_above) {
    usage.memory = usage.mapped = 0;
    for (const auto& [pid, otherwise] : held) {
      const HeldMemory exact = proportional(pid, otherwise);
      usage.memory += exact.own;
      usage.mapped += exact.mapped;
    }
  }
  usage.memory += kernel;
  // Time once seen stays counted, even if the kernel forgets a process that was not waited for.
  static const std::uint64_t per_tick = 1'000'000ULL / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const std::uint64_t now = ticks * per_tick;
  if (now + cpu_lost_ < cpu_seen_) cpu_lost_ = cpu_seen_ - now;
  cpu_seen_ = now + cpu_lost_;
  usage.cpu_usec = cpu_seen_;
  return usage;
}

TaskCounts ProcessTree::countTasks() const {
  TaskCounts counts;
  for (const pid_t pid : members()) {
    if (pid == init_) continue;
    const auto times = parseProcessTimes(readFile(pid, "stat"));
    if (!times) continue;
    ++counts.processes;
    counts.threads += std::max<std::uint64_t>(times->threads, 1) - 1;
  }
  return counts;
}

std::vector<DeletedFile> ProcessTree::deletedFiles() const {
  std::vector<DeletedFile> files;
  Inodes seen;
  for (const pid_t pid : members()) {
    for (const int number : numbersIn(pid, "fd", kMaxDescriptors)) {
      char path[64];
      std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
      const Fd file(::open(path, O_PATH | O_CLOEXEC));
      struct stat status{};
      struct statfs system{};
      if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 0) continue;
      if (::fstatfs(file.get(), &system) != 0 || system.f_type == TMPFS_MAGIC) continue;
      if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
      char name[4096];
      const ssize_t length = ::readlink(path, name, sizeof(name));
      files.push_back({std::string(name, length > 0 ? static_cast<std::size_t>(length) : 0),
                       static_cast<std::uint64_t>(status.st_blocks) * 512});
    }
  }
  return files;
}

}  // namespace caisson::supervise
