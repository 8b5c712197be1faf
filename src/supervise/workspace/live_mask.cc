#include "supervise/workspace/live_mask.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "supervise/processes/process_tree.h"
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

/// Mounts the mask; 0 or a negative errno. Runs in the helper, a copy of a process that may have threads: raw calls
/// only.
long mask(int pidfd, const MaskTarget& target) {
  long result = raw(SYS_setns, pidfd, CLONE_NEWUSER | CLONE_NEWNS);
  // The id of a root caller does not exist inside, and may not enter the directories there.
  if (result >= 0) result = raw(SYS_setresgid, target.gid, target.gid, target.gid);
  if (result >= 0) result = raw(SYS_setresuid, target.uid, target.uid, target.uid);
  if (result < 0) return result;
  const long top = raw(SYS_openat, AT_FDCWD, target.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (top < 0) return top;
  sys::OpenHow how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = sys::kResolveBeneath | sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks;
  const long point = raw(SYS_openat2, top, target.path.c_str(), &how, sizeof(how));
  if (point < 0) return point;
  struct statx status{};
  result = raw(SYS_statx, point, "", AT_EMPTY_PATH, STATX_TYPE, &status);
  if (result < 0) return result;
  // Masked already: an overlay's name keeps its mask when the host replaces the file below.
  if ((status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return 0;
  const long tree = S_ISDIR(status.stx_mode) ? directoryMask() : fileMask();
  if (tree < 0) return tree;
  return raw(SYS_move_mount, tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/// A process of the sandbox other than pid 1; invalid if there is none. pid 1 cannot be entered: its memory is a copy
/// of ours and belongs to our user namespace.
Fd anyProcess(pid_t init) {
  const ProcessTree tree(init);
  for (const pid_t member : tree.members()) {
    if (member == init) continue;
    Fd pidfd(static_cast<int>(raw(SYS_pidfd_open, member, 0)));
    if (!pidfd) continue;
    // The pid may have been reused between the listing and pidfd_open: check that it is still in the tree.
    const std::vector<pid_t> now = tree.members();
    if (std::ranges::find(now, member) != now.end()) return pidfd;
  }
  return {};
}

}  // namespace

long startMaskHelper(int pidfd, const MaskTarget& target, int report) {
  // No exit signal: an application that embeds us must not see this child in its own handling of SIGCHLD.
  const long helper = raw(SYS_clone, 0, 0, 0, 0, 0);
  if (helper != 0) return helper;
  const auto failed = static_cast<unsigned char>(-mask(pidfd, target));
  raw(SYS_write, report, &failed, 1);
  for (;;) raw(SYS_exit_group, 0);
}

Result<LiveMask> LiveMask::start(pid_t init, const MaskTarget& target) {
  const Fd process = anyProcess(init);
  if (!process) return fail(sysError(Stage::mounts, "setns", target.path, ESRCH));
  auto pipe = sys::makePipe(Stage::mounts, target.path);
  if (!pipe) return fail(pipe.error());
  Fd ours = std::move(pipe->read);
  const Fd theirs = std::move(pipe->write);
  const long helper = startMaskHelper(process.get(), target, theirs.get());
  if (helper < 0) return fail(sysError(Stage::mounts, "clone", target.path, static_cast<int>(-helper)));
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

int LiveMask::finish() {
  const pid_t helper = std::exchange(helper_, -1);
  unsigned char failed = ECANCELED;
  if (::read(report_.get(), &failed, 1) != 1) failed = ECANCELED;
  if (helper <= 0) return failed;
  while (raw(SYS_wait4, helper, nullptr, __WALL, nullptr) == -EINTR) {
  }
  return failed;
}

}  // namespace caisson::supervise
