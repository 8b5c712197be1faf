#include "sys/process_view.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

bool readMemory(pid_t process, std::uint64_t address, std::span<char> room) {
  const iovec here{room.data(), room.size()};
  const iovec there{reinterpret_cast<void*>(address), room.size()};  // NOLINT: an address of the other process
  const ssize_t copied = ::process_vm_readv(process, &here, 1, &there, 1, 0);
  if (copied >= 0) return copied == static_cast<ssize_t>(room.size());
  if (errno != ENOSYS && errno != EPERM) return false;
  // A filter around us (of a container engine) denies the call. The file has the same checks.
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/mem", process);
  const Fd memory(::open(path, O_RDONLY | O_CLOEXEC));
  return memory && ::pread(memory.get(), room.data(), room.size(), static_cast<off_t>(address)) ==
                       static_cast<ssize_t>(room.size());
}

std::optional<std::string> readText(pid_t process, std::uint64_t address) {
  std::string text;
  char room[256];
  while (text.size() < PATH_MAX) {
    // Never cross a page: the next one may not be mapped.
    const std::uint64_t at = address + text.size();
    const std::size_t piece = std::min<std::size_t>(sizeof(room), kPage - at % kPage);
    if (!readMemory(process, at, {room, piece})) return std::nullopt;
    const std::size_t length = ::strnlen(room, piece);
    text.append(room, length);
    if (length < piece) return text;
  }
  return std::nullopt;
}

std::string directoryOf(pid_t process, int descriptor) {
  char path[64];
  if (descriptor == AT_FDCWD) {
    std::snprintf(path, sizeof(path), "/proc/%d/cwd", process);
  } else {
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, descriptor);
  }
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path, target, sizeof(target));
  if (length <= 0 || length == sizeof(target) || target[0] != '/') return {};
  return {target, static_cast<std::size_t>(length)};
}

Fd objectOf(pid_t process, int descriptor) {
  char path[64];
  if (descriptor == AT_FDCWD) {
    std::snprintf(path, sizeof(path), "/proc/%d/cwd", process);
  } else {
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, descriptor);
  }
  return Fd(::open(path, O_PATH | O_CLOEXEC));
}

Fd rootOf(pid_t process) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/root", process);
  return Fd(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::vector<std::string> automountPoints() {
  std::string mounts;
  const Fd file(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  char room[4096];
  for (ssize_t got; (got = ::read(file.get(), room, sizeof(room))) > 0;)
    mounts.append(room, static_cast<std::size_t>(got));
  std::vector<std::string> points;
  for (std::string_view rest = mounts; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.find(" - autofs ") == std::string_view::npos) continue;
    for (int field = 0; field < 4; ++field) line.remove_prefix(line.find(' ') + 1);  // number, parent, device, root
    points.emplace_back(line.substr(0, line.find(' ')));
  }
  return points;
}

Glance glance(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long opened = raw(SYS_openat2, root, path.c_str(), &how, sizeof(how));
  if (opened < 0) return {.error = static_cast<int>(-opened)};
  const Fd found(static_cast<int>(opened));
  struct stat status{};
  struct statvfs mount{};
  if (::fstat(found.get(), &status) != 0 || ::fstatvfs(found.get(), &mount) != 0) return {.error = errno};
  return {.regular = S_ISREG(status.st_mode),
          .directory = S_ISDIR(status.st_mode),
          .read_only = (mount.f_flag & ST_RDONLY) != 0,
          .noexec = (mount.f_flag & ST_NOEXEC) != 0};
}

}  // namespace caisson::sys
