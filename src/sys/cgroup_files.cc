#include "sys/cgroup_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <set>

#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr std::string_view kPrefix = "caisson-";

/// Calls `use` with each non-empty part.
template <class Use>
void forEachPart(std::string_view text, char separator, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

template <class Number>
bool parseWhole(std::string_view text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Removes and returns the part of `text` before the next `separator`.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

struct NamedController {
  bool CgroupControllers::* member;
  std::string_view name;
};
constexpr NamedController kControllers[] = {{&CgroupControllers::memory, "memory"},
                                            {&CgroupControllers::pids, "pids"},
                                            {&CgroupControllers::cpu, "cpu"},
                                            {&CgroupControllers::cpuset, "cpuset"},
                                            {&CgroupControllers::io, "io"}};

template <class Combine>
CgroupControllers combine(const CgroupControllers& a, const CgroupControllers& b, Combine each) {
  CgroupControllers result;
  for (const auto& [member, name] : kControllers) result.*member = each(a.*member, b.*member);
  return result;
}

std::uint64_t inodeOf(const char* path) {
  struct stat status{};
  return ::stat(path, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

std::optional<std::string> readAt(int directory, const char* file) {
  const Fd fd(::openat(directory, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    text.append(buffer, static_cast<std::size_t>(got));
    // The kernel stops early only before a line that does not fit, and none is that long.
    if (got < static_cast<ssize_t>(sizeof(buffer) / 2)) return text;
  }
}

int writeAt(int directory, const char* file, std::string_view value) {
  const Fd fd(::openat(directory, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return errno;
  while (true) {
    const ssize_t written = ::write(fd.get(), value.data(), value.size());
    if (written == static_cast<ssize_t>(value.size())) return 0;
    if (written >= 0) return EIO;
    if (errno != EINTR) return errno;
  }
}

Fd openDirectoryAt(int parent, const char* name) {
  return Fd(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::optional<std::vector<pid_t>> membersOf(int directory) {
  const auto text = readAt(directory, "cgroup.procs");
  if (!text) return std::nullopt;
  std::vector<pid_t> pids;
  forEachPart(*text, '\n', [&](std::string_view line) {
    pid_t pid = 0;
    if (parseWhole(line, pid)) pids.push_back(pid);
  });
  return pids;
}

bool holds(int directory, pid_t pid) {
  const auto members = membersOf(directory);
  return members && std::ranges::find(*members, pid) != members->end();
}

bool holdsOnly(int directory, pid_t self) {
  const auto members = membersOf(directory);
  return members && std::ranges::all_of(*members, [&](pid_t pid) { return pid == self; });
}

std::vector<OwnCgroup> parseOwnCgroups(std::string_view text) {
  std::vector<OwnCgroup> own;
  forEachPart(text, '\n', [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return;
    own.push_back({std::string(line.substr(first + 1, second - first - 1)), std::string(line.substr(second + 1))});
  });
  return own;
}

bool listHas(std::string_view list, std::string_view word, char separator) {
  while (!list.empty() && list.back() == '\n') list.remove_suffix(1);
  bool found = false;
  forEachPart(list, separator, [&](std::string_view part) { found = found || part == word; });
  return found;
}

CgroupControllers parseControllers(std::string_view list, char separator) {
  CgroupControllers found;
  for (const auto& [member, name] : kControllers) found.*member = listHas(list, name, separator);
  found.io = found.io || listHas(list, "blkio", separator);  // the v1 name of io
  return found;
}

std::string namesOf(const CgroupControllers& controllers) {
  std::string names;
  for (const auto& [member, name] : kControllers) {
    if (!(controllers.*member)) continue;
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

CgroupControllers operator&(const CgroupControllers& a, const CgroupControllers& b) {
  return combine(a, b, [](bool one, bool other) { return one && other; });
}
CgroupControllers operator|(const CgroupControllers& a, const CgroupControllers& b) {
  return combine(a, b, [](bool one, bool other) { return one || other; });
}
CgroupControllers operator-(const CgroupControllers& a, const CgroupControllers& b) {
  return combine(a, b, [](bool one, bool other) { return one && !other; });
}
bool any(const CgroupControllers& controllers) { return controllers != CgroupControllers{}; }

std::optional<std::uint64_t> parseCount(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::uint64_t number = 0;
  if (!parseWhole(text, number)) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> parseKeyed(std::string_view text, std::string_view key) {
  std::optional<std::uint64_t> value;
  forEachPart(text, '\n', [&](std::string_view line) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      value = parseCount(line.substr(key.size() + 1));
  });
  return value;
}

std::uint64_t sumIoStat(std::string_view text, std::string_view key) {
  std::uint64_t sum = 0;
  forEachPart(text, '\n', [&](std::string_view line) {
    forEachPart(line, ' ', [&](std::string_view part) {
      if (part.size() > key.size() && part.starts_with(key) && part[key.size()] == '=')
        sum += parseCount(part.substr(key.size() + 1)).value_or(0);
    });
  });
  return sum;
}

std::uint64_t sumBlkio(std::string_view text, std::string_view operation) {
  std::uint64_t sum = 0;
  forEachPart(text, '\n', [&](std::string_view line) {
    take(line, ' ');  // the device; the last line, "Total 4096", has none and never matches
    if (take(line, ' ') == operation) sum += parseCount(line).value_or(0);
  });
  return sum;
}

std::string formatCpuList(std::vector<std::uint32_t> cpus) {
  std::ranges::sort(cpus);
  const auto doubles = std::ranges::unique(cpus);
  cpus.erase(doubles.begin(), doubles.end());
  std::string list;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!list.empty()) list += ',';
    list += std::to_string(cpus[first]);
    if (last != first) list.append("-").append(std::to_string(cpus[last]));
    first = last + 1;
  }
  return list;
}

std::optional<std::uint64_t> cpuQuota(double cpus) {
  constexpr double kMaxCpus = 65'536;  // more than any kernel supports; keeps the conversion defined
  if (!std::isfinite(cpus) || cpus <= 0) return std::nullopt;
  const double quota = std::round(std::min(cpus, kMaxCpus) * static_cast<double>(kCpuPeriodUsec));
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(quota), 1000);
}

std::string formatCgroupName(const CgroupName& name) {
  char world[17];
  const auto end = std::to_chars(world, world + sizeof(world), name.world, 16).ptr;
  std::string text(kPrefix);
  text.append(std::to_string(name.pid)).append("-").append(std::to_string(name.start)).append("-");
  text.append(world, end).append("-").append(name.id);
  return text;
}

std::optional<CgroupName> parseCgroupName(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  CgroupName name;
  if (!parseWhole(take(text, '-'), name.pid) || name.pid <= 0) return std::nullopt;
  if (!parseWhole(take(text, '-'), name.start)) return std::nullopt;
  if (!parseWhole(take(text, '-'), name.world, 16)) return std::nullopt;
  if (!isCgroupId(text) && text != kSupervisorLeaf) return std::nullopt;
  name.id = text;
  return name;
}

bool isCgroupId(std::string_view id) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !id.empty() && id.size() <= 128 && id.find_first_not_of(kAllowed) == std::string_view::npos &&
         id != kSupervisorLeaf;
}

std::optional<ProcessStart> parseProcessStart(std::string_view stat) {
  ProcessStart start;
  std::string_view rest = stat;
  if (!parseWhole(take(rest, ' '), start.pid)) return std::nullopt;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > stat.size()) return std::nullopt;
  rest = stat.substr(name_end + 2);
  for (int field = 3; field < 22; ++field) take(rest, ' ');
  if (!parseWhole(take(rest, ' '), start.ticks)) return std::nullopt;
  return start;
}

CgroupName ownCgroupName() {
  CgroupName name{.pid = ::getpid()};
  // /proc of another pid namespace shows another process under our pid, whose start time is not ours.
  const auto start = parseProcessStart(readAt(AT_FDCWD, "/proc/self/stat").value_or(""));
  if (start && start->pid == name.pid) name.start = start->ticks;
  name.world = (inodeOf("/proc/self/ns/pid") << 32) ^ inodeOf("/proc/self/ns/time");
  return name;
}

bool makerIsGone(const CgroupName& name) {
  if (::kill(name.pid, 0) != 0) return errno == ESRCH;
  if (name.start == 0) return false;
  const auto self = parseProcessStart(readAt(AT_FDCWD, "/proc/self/stat").value_or(""));
  if (!self || self->pid != ::getpid()) return false;
  const std::string path = "/proc/" + std::to_string(name.pid) + "/stat";
  const auto now = parseProcessStart(readAt(AT_FDCWD, path.c_str()).value_or(""));
  return now && now->ticks != name.start;
}

std::size_t killMembers(int directory) {
  const auto first = membersOf(directory);
  if (!first) return 0;
  std::vector<std::pair<pid_t, Fd>> open;
  for (const pid_t pid : *first) {
    if (pid <= 1 || pid == ::getpid()) continue;
    Fd pidfd(static_cast<int>(std::max<long>(raw(SYS_pidfd_open, pid, 0), -1)));
    if (pidfd) open.emplace_back(pid, std::move(pidfd));
  }
  const auto second = membersOf(directory);
  if (!second) return 0;
  const std::set<pid_t> still(second->begin(), second->end());
  for (const auto& [pid, pidfd] : open) {
    if (still.contains(pid)) raw(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  }
  return second->size();
}

}  // namespace caisson::sys
