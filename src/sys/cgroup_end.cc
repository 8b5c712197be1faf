// Kills the processes of a sandbox's cgroup and removes its directories, now or at a later start.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <tuple>

#include "sys/cgroup.h"
#include "sys/cgroup_files.h"

namespace caisson::sys {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = CgroupBase::Kind;

constexpr auto kTimeout = std::chrono::seconds(2);

void pauseFor(std::chrono::microseconds time) {
  const timespec pause{.tv_sec = 0, .tv_nsec = time.count() * 1000};
  ::nanosleep(&pause, nullptr);
}

bool populated(int directory) {
  const auto events = readAt(directory, "cgroup.events");
  return events && parseKeyed(*events, "populated").value_or(0) != 0;
}

/// Kills the processes in the per-command cgroups of one of ours (Cgroup::createChild), and removes those.
void removeChildren(int directory) {
  const int fd = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = fd >= 0 ? ::fdopendir(fd) : nullptr;
  if (listing == nullptr) {
    if (fd >= 0) ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const Fd child = openDirectoryAt(directory, entry->d_name);
    if (child) (void)killMembers(child.get());
    (void)::unlinkat(directory, entry->d_name, AT_REMOVEDIR);
  }
  ::closedir(listing);
}

/// v2: waits until the last process is gone, which the kernel reports, or until the deadline.
void waitUntilEmpty(int directory, Clock::time_point deadline) {
  const Fd events(::openat(directory, "cgroup.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  char text[256];
  while (events) {
    const ssize_t got = ::pread(events.get(), text, sizeof(text), 0);
    if (got <= 0 || parseKeyed({text, static_cast<std::size_t>(got)}, "populated").value_or(0) == 0) return;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return;
    pollfd wait{.fd = events.get(), .events = POLLPRI, .revents = 0};
    (void)::poll(&wait, 1, static_cast<int>(left));
  }
}

}  // namespace

Cgroup::Cgroup(Cgroup&& other) noexcept { *this = std::move(other); }

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this == &other) return *this;
  std::ignore = remove();
  kind_ = std::exchange(other.kind_, Kind::none);
  name_ = std::move(other.name_);
  directories_ = std::exchange(other.directories_, {});
  entries_ = std::exchange(other.entries_, {});
  entry_numbers_ = std::exchange(other.entry_numbers_, {});
  enforced_ = std::exchange(other.enforced_, {});
  memory_limit_ = std::exchange(other.memory_limit_, 0);
  pids_limit_ = std::exchange(other.pids_limit_, 0);
  return *this;
}

// A later start removes what remains.
Cgroup::~Cgroup() { std::ignore = remove(); }

Result<void> Cgroup::kill() const {
  if (!valid()) return {};
  if (kind_ == Kind::v2) {
    const int directory = directories_.front().fd.get();
    const int error = writeAt(directory, "cgroup.kill", "1");  // Linux 5.14
    if (error == 0) return {};
    if (error != ENOENT)
      return fail(sysError(Stage::limits, "write", directories_.front().path + "/cgroup.kill", error));
  }
  // Block forks first, or a fork bomb creates processes faster than we kill them.
  if (const Part* pids = part(&CgroupControllers::pids)) (void)writeAt(pids->fd.get(), "pids.max", "0");
  const auto deadline = Clock::now() + kTimeout;
  while (true) {
    std::size_t left = 0;
    for (const Part& one : directories_) left += killMembers(one.fd.get());
    if (left == 0) return {};
    if (Clock::now() > deadline) break;
    pauseFor(std::chrono::milliseconds(1));
  }
  return fail(plainError(Stage::limits, "kill", name_, "processes survive SIGKILL: they hang in the kernel"));
}

Result<void> Cgroup::remove() {
  closeEntries();
  const auto deadline = Clock::now() + kTimeout;
  auto pause = std::chrono::microseconds(50);
  bool killed = false;
  Result<void> result;
  for (Part& part : directories_) {
    while (::unlinkat(part.parent.get(), name_.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      const int error = errno;
      if (error != EBUSY || Clock::now() > deadline) {
        result = fail(sysError(Stage::limits, "rmdir", part.path, error, "a later start of caisson removes it"));
        break;
      }
      if (!killed) std::ignore = kill();  // the next rmdir reports a failure
      killed = true;
      removeChildren(part.fd.get());
      if (kind_ == Kind::v2 && populated(part.fd.get())) {
        waitUntilEmpty(part.fd.get(), deadline);
      } else {
        pauseFor(pause);
        pause = std::min(pause * 2, std::chrono::microseconds(20'000));
      }
    }
  }
  directories_.clear();
  return result;
}

std::vector<std::string> Cgroup::keep() {
  closeEntries();
  std::vector<std::string> paths;
  for (const Part& part : directories_) paths.push_back(part.path);
  directories_.clear();
  return paths;
}

void removeKeptCgroup(const std::vector<std::string>& directories) {
  const auto deadline = Clock::now() + kTimeout;
  for (const std::string& path : directories) {
    auto pause = std::chrono::microseconds(50);
    while (::rmdir(path.c_str()) != 0 && errno == EBUSY && Clock::now() < deadline) {
      pauseFor(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(20'000));
    }
  }
}

Cgroup Cgroup::adopt(const CgroupBase& base, std::string_view name) {
  Cgroup cgroup;
  cgroup.kind_ = base.kind;
  cgroup.name_ = name;
  for (const CgroupBase::Directory& directory : base.directories) {
    Part part{.parent = Fd(::fcntl(directory.fd.get(), F_DUPFD_CLOEXEC, 3)),
              .fd = openDirectoryAt(directory.fd.get(), cgroup.name_.c_str()),
              .path = directory.path + "/" + cgroup.name_,
              .has = directory.offers,
              .accounts_cpu = directory.accounts_cpu};
    if (part.parent && part.fd) cgroup.directories_.push_back(std::move(part));
  }
  return cgroup;
}

namespace {

/// The number of subdirectories, from the link count.
std::optional<nlink_t> directoriesIn(int directory) {
  struct stat status{};
  if (::fstat(directory, &status) != 0 || status.st_nlink < 2) return std::nullopt;
  return status.st_nlink - 2;
}

/// The names of this user's directories below the base whose maker is gone. One sandbox may have several directories.
/// `kept`: those with the prefix kKeptCgroup, else those without. `own` returns whether the caller has a cgroup in a
/// directory of the base.
template <class Own>
std::set<std::string> leftBehind(const CgroupBase& base, bool kept, const Own& own) {
  std::vector<const CgroupBase::Directory*> worth;
  for (const CgroupBase::Directory& directory : base.directories) {
    if (directoriesIn(directory.fd.get()) != (own(directory) ? 1U : 0U)) worth.push_back(&directory);
  }
  std::set<std::string> names;
  if (worth.empty()) return names;
  const CgroupName self = ownCgroupName();
  for (const CgroupBase::Directory* each : worth) {
    const CgroupBase::Directory& directory = *each;
    const int fd = ::openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* listing = fd >= 0 ? ::fdopendir(fd) : nullptr;
    if (listing == nullptr) {
      if (fd >= 0) ::close(fd);
      continue;
    }
    while (const dirent* entry = ::readdir(listing)) {
      const auto name = parseCgroupName(entry->d_name);
      struct stat status{};
      if (!name || name->world != self.world || names.contains(entry->d_name)) continue;
      if (name->pid == self.pid && name->start == self.start) continue;
      if (name->id.starts_with(kKeptCgroup) != kept) continue;
      if (::fstatat(directory.fd.get(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (status.st_uid == ::geteuid() && makerIsGone(*name)) names.insert(entry->d_name);
    }
    ::closedir(listing);
  }
  return names;
}

}  // namespace

std::vector<std::string> removeAbandonedCgroups(const CgroupBase& base, const Cgroup& own) {
  std::vector<std::string> removed;
  const auto isIn = [&](const CgroupBase::Directory& directory) {
    return std::ranges::any_of(own.directories_,
                               [&](const Cgroup::Part& part) { return part.path == directory.path + "/" + own.name_; });
  };
  for (const std::string& name : leftBehind(base, false, isIn)) {
    if (parseCgroupName(name)->id == kSupervisorLeaf) {
      // Not a sandbox: processes left in there belong to the application around the supervisor, and must survive.
      if (::unlinkat(base.directories.front().fd.get(), name.c_str(), AT_REMOVEDIR) == 0) removed.push_back(name);
    } else if (Cgroup left = Cgroup::adopt(base, name); left.remove()) {
      removed.push_back(name);
    }
  }
  return removed;
}

std::vector<std::string> removeEmptyKeptCgroups(const CgroupBase& base, std::chrono::seconds older_than) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);  // process start times use this clock, too
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto seconds = static_cast<std::uint64_t>(now.tv_sec);
  std::vector<std::string> removed;
  for (const std::string& name : leftBehind(base, true, [](const auto&) { return false; })) {
    if (parseCgroupName(name)->start / ticks + static_cast<std::uint64_t>(older_than.count()) > seconds) continue;
    bool any = false;
    for (const CgroupBase::Directory& directory : base.directories) {
      any = ::unlinkat(directory.fd.get(), name.c_str(), AT_REMOVEDIR) == 0 || any;  // EBUSY: has processes
    }
    if (any) removed.push_back(name);
  }
  return removed;
}

}  // namespace caisson::sys
