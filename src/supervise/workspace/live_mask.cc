#include "supervise/workspace/live_mask.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
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

/// Becomes the sandbox's user inside; 0 or a negative errno. This and the next run in the helper, a copy of a process
/// that may have threads: raw calls only.
long enterAsUser(const MaskNamespaces& namespaces, const MaskTarget& target) {
  long result = enter(namespaces);
  // The id of a root caller does not exist inside, and may not enter the directories there.
  if (result >= 0) result = raw(SYS_setresgid, target.gid, target.gid, target.gid);
  if (result >= 0) result = raw(SYS_setresuid, target.uid, target.uid, target.uid);
  return result < 0 ? result : 0;
}

/// Whether this is one of our masks. Only mounts are: no payload has such a device, nor a file system of one block.
bool isMask(long object, const struct statx& status) {
  if ((status.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) return false;
  if (S_ISCHR(status.stx_mode)) return status.stx_rdev_major == 1 && status.stx_rdev_minor == 3;
  struct statfs system{};
  return S_ISDIR(status.stx_mode) && raw(SYS_fstatfs, object, &system) >= 0 && system.f_type == TMPFS_MAGIC &&
         system.f_blocks == 1;
}

/// Mounts a mask over `path` below an open directory, or over that itself; 0 or a negative errno. `kept`: not if it is
/// a file that is a mount point.
long mask(long top, const char* path, bool kept) {
  sys::OpenHow how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = sys::kResolveBeneath | sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks;
  const long point =
      *path == '\0' ? raw(SYS_fcntl, top, F_DUPFD_CLOEXEC, 3) : raw(SYS_openat2, top, path, &how, sizeof(how));
  if (point < 0) return point;
  const sys::Fd closed(static_cast<int>(point));
  struct statx status{};
  const long result = raw(SYS_statx, point, "", AT_EMPTY_PATH, STATX_TYPE, &status);
  if (result < 0) return result;
  // Masked already: an overlay's name keeps its mask when the host replaces the file below. A mount point that is no
  // mask, as of a read-only file, shows the host's content.
  if (isMask(point, status)) return 0;
  const bool mounted = (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  if (kept && mounted && S_ISREG(status.stx_mode)) return 0;
  const long tree = S_ISDIR(status.stx_mode) ? directoryMask() : fileMask();
  if (tree < 0) return tree;
  const sys::Fd closed_tree(static_cast<int>(tree));
  return raw(SYS_move_mount, tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/// The name in a view of `part` of what has this name in the workspace: "" if that is or holds the part, nullptr if the
/// view does not show it.
const char* nameIn(std::string_view part, const std::string& path) {
  const auto holds = [](std::string_view above, std::string_view below) {
    return below.size() > above.size() && below.starts_with(above) && below[above.size()] == '/';
  };
  if (part.empty()) return path.c_str();
  if (part == path || holds(path, part)) return "";
  return holds(part, path) ? path.c_str() + part.size() + 1 : nullptr;
}

bool isAbsence(long error) { return error == -ENOENT || error == -ENOTDIR || error == -ELOOP; }

/// Masks the paths in one view, and adds to their results what failed. A view that is masked itself shows nothing.
void maskView(const MaskTarget& target, const std::string& directory, std::string_view part,
              long (&results)[kMaxMasksAtOnce]) {
  sys::OpenHow how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks;
  const long top = raw(SYS_openat2, AT_FDCWD, directory.c_str(), &how, sizeof(how));
  const sys::Fd closed(static_cast<int>(top));
  struct statx status{};
  if (top >= 0 && raw(SYS_statx, top, "", AT_EMPTY_PATH, STATX_TYPE, &status) >= 0 && isMask(top, status)) return;
  for (std::size_t i = 0; i < target.paths.size() && i < kMaxMasksAtOnce; ++i) {
    const std::string& path = target.paths[i];
    const char* const name = nameIn(part, path);
    // A mask over the root would be the root of the next helper.
    if (name == nullptr || (*name == '\0' && directory == "/")) continue;
    const bool kept = std::ranges::find(target.kept, path) != target.kept.end();
    const long result = top < 0 ? top : mask(top, name, kept);
    // A place where it is shown counts more than one that does not have it.
    if (result < 0 && (results[i] == 0 || isAbsence(results[i]))) results[i] = result;
  }
}

}  // namespace

long startMaskHelper(const MaskNamespaces& namespaces, const MaskTarget& target, int report) {
  // No exit signal: an application that embeds us must not see this child in its own handling of SIGCHLD.
  const long helper = raw(SYS_clone, 0, 0, 0, 0, 0);
  if (helper != 0) return helper;
  const long entered = enterAsUser(namespaces, target);
  long results[kMaxMasksAtOnce] = {};
  if (entered >= 0) {
    maskView(target, target.directory, "", results);
    for (const MaskCopy& copy : target.copies) maskView(target, copy.directory, copy.part, results);
  }
  unsigned char failed[kMaxMasksAtOnce];
  const std::size_t count = std::min(target.paths.size(), kMaxMasksAtOnce);
  for (std::size_t i = 0; i < count; ++i) failed[i] = static_cast<unsigned char>(-(entered < 0 ? entered : results[i]));
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
