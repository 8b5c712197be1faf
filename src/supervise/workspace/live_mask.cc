#include "supervise/workspace/live_mask.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sys/kernel_abi.h"
#include "sys/pipe.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::raw;

constexpr int kKillTimeoutMs = 1000;
constexpr std::uint64_t kAttributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

/// An empty file that cannot be opened: a device on a mount without devices.
long fileMask() {
  const long tree = raw(SYS_open_tree, AT_FDCWD, "/dev/null", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0) return tree;
  mount_attr attributes{};
  attributes.attr_set = kAttributes;
  const long set = raw(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes));
  return set < 0 ? set : tree;
}

long directoryMask() {
  const long context = raw(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
  if (context < 0) return context;
  raw(SYS_fsconfig, context, FSCONFIG_SET_STRING, "mode", "000", 0);
  raw(SYS_fsconfig, context, FSCONFIG_SET_STRING, "size", "4096", 0);
  const long created = raw(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  return created < 0 ? created : raw(SYS_fsmount, context, FSMOUNT_CLOEXEC, kAttributes);
}

long enter(const MaskNamespaces& namespaces) {
  if (namespaces.init >= 0) return raw(SYS_setns, namespaces.init, CLONE_NEWUSER | CLONE_NEWNS);
  const long user = raw(SYS_setns, namespaces.user, CLONE_NEWUSER);  // first: it gives the right to enter the other
  return user < 0 ? user : raw(SYS_setns, namespaces.mount, CLONE_NEWNS);
}

/// Opens the directory of the masks inside; a descriptor or a negative errno. This and the next run in the helper, a
/// copy of a process that may have threads: raw calls only.
long enterDirectory(const MaskNamespaces& namespaces, const MaskTarget& target) {
  long result = enter(namespaces);
  // The id of a root caller does not exist inside, and may not enter the directories there.
  if (result >= 0) result = raw(SYS_setresgid, target.gid, target.gid, target.gid);
  if (result >= 0) result = raw(SYS_setresuid, target.uid, target.uid, target.uid);
  if (result < 0) return result;
  return raw(SYS_openat, AT_FDCWD, target.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/// Mounts a mask; 0 or a negative errno.
long mask(long top, const std::string& path) {
  sys::OpenHow how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = sys::kResolveBeneath | sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks;
  const long point = raw(SYS_openat2, top, path.c_str(), &how, sizeof(how));
  if (point < 0) return point;
  const sys::Fd closed(static_cast<int>(point));
  struct statx status{};
  const long result = raw(SYS_statx, point, "", AT_EMPTY_PATH, STATX_TYPE, &status);
  if (result < 0) return result;
  // Masked already: an overlay's name keeps its mask when the host replaces the file below.
  if ((status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return 0;
  const long tree = S_ISDIR(status.stx_mode) ? directoryMask() : fileMask();
  if (tree < 0) return tree;
  const sys::Fd closed_tree(static_cast<int>(tree));
  return raw(SYS_move_mount, tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

}  // namespace

long startMaskHelper(const MaskNamespaces& namespaces, const MaskTarget& target, int report) {
  // No exit signal: an application that embeds us must not see this child in its own handling of SIGCHLD.
  const long helper = raw(SYS_clone, 0, 0, 0, 0, 0);
  if (helper != 0) return helper;
  const long top = enterDirectory(namespaces, target);
  unsigned char failed[kMaxMasksAtOnce];
  std::size_t count = 0;
  for (const std::string& path : target.paths) {
    if (count == kMaxMasksAtOnce) break;
    failed[count++] = static_cast<unsigned char>(-(top < 0 ? top : mask(top, path)));
  }
  raw(SYS_write, report, failed, count);
  for (;;) raw(SYS_exit_group, 0);
}

Result<LiveMask> LiveMask::start(const MaskNamespaces& namespaces, const MaskTarget& target) {
  auto pipe = sys::makePipe(Stage::mounts, target.directory);
  if (!pipe) return fail(pipe.error());
  Fd ours = std::move(pipe->read);
  const Fd theirs = std::move(pipe->write);
  const long helper = startMaskHelper(namespaces, target, theirs.get());
  if (helper < 0) return fail(sysError(Stage::mounts, "clone", target.directory, static_cast<int>(-helper)));
  return LiveMask(static_cast<pid_t>(helper), std::move(ours));
}

LiveMask::LiveMask(LiveMask&& other) noexcept
    : helper_(std::exchange(other.helper_, -1)), report_(std::move(other.report_)) {}

LiveMask::~LiveMask() {
  if (helper_ <= 0) return;
  ::kill(helper_, SIGKILL);  // our own child, not yet waited for: its number is not reused
  // It may hang in the kernel, on a file system that does not answer: then it is left behind as a zombie.
  pollfd wait{report_.get(), POLLIN, 0};
  while (::poll(&wait, 1, kKillTimeoutMs) < 0 && errno == EINTR) {
  }
  raw(SYS_wait4, helper_, nullptr, wait.revents != 0 ? __WALL : __WALL | WNOHANG, nullptr);
}

std::vector<int> LiveMask::finish(std::size_t paths) {
  const pid_t helper = std::exchange(helper_, -1);
  unsigned char failed[kMaxMasksAtOnce];
  const ssize_t got = ::read(report_.get(), failed, sizeof(failed));
  std::vector<int> errors(paths, ECANCELED);
  for (std::size_t i = 0; i < paths && static_cast<ssize_t>(i) < got; ++i) errors[i] = failed[i];
  if (helper <= 0) return errors;
  while (raw(SYS_wait4, helper, nullptr, __WALL, nullptr) == -EINTR) {
  }
  return errors;
}

}  // namespace caisson::supervise
