#include "supervise/syscalls/set_id_bits.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <optional>
#include <string>
#include <string_view>

#include "base/syscall_names.h"
#include "supervise/syscalls/link_target.h"
#include "sys/change_mode.h"
#include "sys/kernel_file.h"
#include "sys/process_view.h"
#include "sys/raw_syscall.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

constexpr int kMaxLinksOfPath = 40;  // as the kernel
constexpr mode_t kPlainBits = 01777;
constexpr auto kNoUser = static_cast<uid_t>(-1);

struct Target {
  sys::Fd object;  ///< O_PATH
  int error = 0;   ///< if there is none
};

Target failed(int error) { return {.object = {}, .error = error}; }

Target descriptorTarget(pid_t process, int descriptor) {
  if (descriptor < 0 && descriptor != AT_FDCWD) return failed(EBADF);
  sys::Fd object = sys::objectOf(process, descriptor);
  return object ? Target{std::move(object), 0} : failed(EBADF);
}

/// The number in "/proc/self/fd/7", by which the C library changes what O_PATH opened.
std::optional<int> namedDescriptor(std::string_view path) {
  constexpr std::string_view kPrefix = "/proc/self/fd/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  int number = -1;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  if (error != std::errc() || end != path.data() + path.size() || number < 0) return std::nullopt;
  return number;
}

/// What an absolute path leads to inside the root of the process.
Target pathTarget(pid_t process, std::string path, bool follow) {
  auto root = sys::RootDir::adopt(sys::rootOf(process), {.known_as = "/"});
  if (!root) return failed(EPERM);
  for (int links = 0; links <= kMaxLinksOfPath; ++links) {
    auto object = root->openFile(
        path, {.flags = O_PATH, .types = {sys::FileType::regular, sys::FileType::directory, sys::FileType::link}});
    if (!object) return failed(object.error().sys_errno != 0 ? object.error().sys_errno : EPERM);
    struct stat status{};
    if (::fstat(object->get(), &status) != 0) return failed(errno);
    if (!follow || !S_ISLNK(status.st_mode)) return {std::move(*object), 0};
    if (const int error = followLinkAt(object->get(), path); error != 0) return failed(error);
  }
  return failed(ELOOP);
}

/// The object of a call with a path. `directory`: of a relative one.
Target namedTarget(const Attempt& attempt, int directory, std::uint64_t address, std::uint32_t flags) {
  if ((flags & ~std::uint32_t{AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH}) != 0) return failed(EINVAL);
  const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  const auto path = sys::readText(attempt.pid, address);
  if (!path) return failed(EFAULT);
  if (path->empty()) return (flags & AT_EMPTY_PATH) != 0 ? descriptorTarget(attempt.pid, directory) : failed(ENOENT);
  if (const auto number = namedDescriptor(*path); number && follow) return descriptorTarget(attempt.pid, *number);
  if (path->starts_with('/')) return pathTarget(attempt.pid, *path, follow);
  const std::string base = sys::directoryOf(attempt.pid, directory);
  if (base.empty()) return failed(EBADF);
  return pathTarget(attempt.pid, base + "/" + *path, follow);
}

/// The user with whose rights a process uses files; kNoUser if it is gone.
uid_t fileUserOf(pid_t process) {
  const std::string status = sys::readKernelFile(("/proc/" + std::to_string(process) + "/status").c_str());
  constexpr std::string_view kUids = "\nUid:\t";
  const std::size_t at = status.find(kUids);
  if (at == std::string::npos) return kNoUser;
  std::string_view line = std::string_view(status).substr(at + kUids.size());
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(line.rfind('\t') + 1);  // real, effective, saved, file system
  uid_t user = kNoUser;
  std::from_chars(line.data(), line.data() + line.size(), user);
  return user;
}

}  // namespace

long startModeHelper(int user_namespace, int object, mode_t mode) {
  const long child = sys::raw(SYS_clone, 0, 0, 0, 0, 0);
  if (child != 0) return child;
  // A copy of a process that may have threads: nothing allocates or locks.
  const std::uint64_t all = ~0ULL;
  sys::raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, nullptr, sizeof(all));
  long changed = sys::raw(SYS_setns, user_namespace, CLONE_NEWUSER);
  if (changed >= 0) changed = -sys::changeMode(object, mode);
  for (;;) sys::raw(SYS_exit_group, changed < 0 ? -changed : 0);
}

int changeModeInside(int user_namespace, int object, mode_t mode) {
  const long child = startModeHelper(user_namespace, object, mode);
  if (child < 0) return static_cast<int>(-child);
  int status = 0;
  while (sys::raw(SYS_wait4, child, &status, __WALL, nullptr) == -EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

int setModeWithoutSetIds(const Attempt& attempt, const Listener& listener, const plan::Identity& identity,
                         const ChangeForeignMode& change_foreign) {
  const std::string_view call = syscallName(attempt.number);
  const std::uint64_t* arguments = attempt.arguments;
  const bool at = call == "fchmodat" || call == "fchmodat2";
  if (!at && call != "chmod" && call != "fchmod") return EPERM;
  const auto mode = static_cast<mode_t>(arguments[at ? 2 : 1]) & kPlainBits;
  const auto flags = call == "fchmodat2" ? static_cast<std::uint32_t>(arguments[3]) : 0U;
  const auto first = static_cast<int>(arguments[0]);
  const Target target = call == "fchmod" ? descriptorTarget(attempt.pid, first == AT_FDCWD ? -1 : first)
                        : at             ? namedTarget(attempt, first, arguments[1], flags)
                                         : namedTarget(attempt, AT_FDCWD, arguments[0], 0);
  const uid_t caller = identity.hasMoreIds() ? fileUserOf(attempt.pid) : identity.outside_uid;
  // Everything read so far belongs to the caller only if it still waits: its pid could have been reused.
  if (!listener.isValid(attempt)) return ESRCH;
  if (target.error != 0) return target.error;
  struct stat status{};
  if (::fstat(target.object.get(), &status) != 0) return errno;
  if (S_ISLNK(status.st_mode)) return EOPNOTSUPP;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return EPERM;
  if (caller != identity.outside_uid && caller != status.st_uid) return EPERM;
  if (status.st_uid == identity.outside_uid) return sys::changeMode(target.object.get(), mode);
  const bool subordinate =
      status.st_uid >= identity.more_uids.first && status.st_uid - identity.more_uids.first < identity.more_uids.count;
  return subordinate && change_foreign ? change_foreign(target.object.get(), mode) : EPERM;
}

}  // namespace caisson::supervise
