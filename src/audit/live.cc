#include "audit/live.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "audit/chain.h"
#include "audit/reader.h"

namespace caisson::audit {
namespace {

std::string contentOf(const std::string& path) {
  const sys::Fd file(::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t got = file ? ::read(file.get(), text, sizeof(text)) : -1;
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
}

/// Start time of the process, in the format of the log, or "".
std::string startedAt(pid_t pid) {
  const std::string stat = contentOf("/proc/" + std::to_string(pid) + "/stat");
  // The name may contain anything, so fields are counted from its closing bracket. Start time is field 22.
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return {};
  const double ticks = static_cast<double>(std::strtoull(stat.c_str() + at + 1, nullptr, 10));
  timespec real{}, boot{};
  ::clock_gettime(CLOCK_REALTIME, &real);
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const double since_boot = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double now = static_cast<double>(real.tv_sec) + static_cast<double>(real.tv_nsec) / 1e9;
  const double up = static_cast<double>(boot.tv_sec) + static_cast<double>(boot.tv_nsec) / 1e9;
  return timeText(static_cast<std::int64_t>((now - up + since_boot) * 1e9));
}

/// Whether the process runs the same executable as this one.
bool isSameProgram(pid_t pid) {
  struct stat ours{}, theirs{};
  return ::stat("/proc/self/exe", &ours) == 0 &&
         ::stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &theirs) == 0 && ours.st_dev == theirs.st_dev &&
         ours.st_ino == theirs.st_ino;
}

bool isOurs(pid_t pid) {
  struct stat status{};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

Result<std::vector<LiveSandbox>> liveSandboxes(const std::string& log_directory) {
  auto reader = Reader::open(log_directory);
  if (!reader) return fail(reader.error());
  struct Created {
    std::string time;
    pid_t pid;
  };
  std::map<std::string, Created> open;
  const auto read = reader->read([&](Entry&& entry, std::string_view) {
    if (entry.event == name(EventType::sandbox_created))
      open[entry.sandbox] = {entry.time, static_cast<pid_t>(entry.pid)};
    if (entry.event == name(EventType::sandbox_destroyed)) open.erase(entry.sandbox);
  });
  if (!read) return fail(read.error());
  std::vector<LiveSandbox> live;
  for (const auto& [id, created] : open) {
    if (created.pid <= 1) continue;
    sys::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, created.pid, 0)));
    // Opened first: if the pid is reused after this, /proc shows another process, but the pidfd never refers to that
    // one.
    const std::string started = pidfd && isOurs(created.pid) ? startedAt(created.pid) : "";
    if (started.empty() || (started > created.time && !isSameProgram(created.pid))) continue;
    live.push_back({id, created.pid, std::move(pidfd)});
  }
  return live;
}

}  // namespace caisson::audit
