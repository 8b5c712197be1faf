#include "session/supervisor/remount.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "sys/fd.h"
#include "sys/kernel_abi.h"
#include "sys/pipe.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

using sys::raw;

constexpr int kTimeoutMs = 10'000;

enum class Step : unsigned char { enter, directory, unmount, configure, create, attach };
constexpr const char* kStepNames[] = {"setns", "fchdir", "umount2", "fsconfig", "fsconfig create", "move_mount"};

/// Reports the failed step and its errno in two bytes: the child must not allocate.
[[noreturn]] void failAt(int report, Step step, long error) {
  const unsigned char message[2] = {static_cast<unsigned char>(step), static_cast<unsigned char>(-error)};
  raw(SYS_write, report, message, sizeof(message));
  for (;;) raw(SYS_exit_group, 1);
}

[[noreturn]] void remountInside(int init_pidfd, int layer, const OverlayOptions& options, int report) {
  long result = raw(SYS_setns, init_pidfd, CLONE_NEWUSER | CLONE_NEWNS);
  // The overlay creates files as the mounting user, and the id of a root caller does not exist inside.
  if (result >= 0) result = raw(SYS_setresgid, options.gid, options.gid, options.gid);
  if (result >= 0) result = raw(SYS_setresuid, options.uid, options.uid, options.uid);
  if (result < 0) failAt(report, Step::enter, result);
  if (result = raw(SYS_umount2, options.target.c_str(), MNT_DETACH); result < 0) failAt(report, Step::unmount, result);
  // Only after the unmount: the overlay covers the store's root, so `..` would lead onto the overlay.
  const long store = raw(SYS_openat, layer, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  result = store < 0 ? store : raw(SYS_fchdir, store);
  if (result < 0) failAt(report, Step::directory, result);
  const long context = raw(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
  const char* const pairs[][2] = {
      {"lowerdir", options.lower.c_str()}, {"upperdir", options.upper.c_str()}, {"workdir", options.work.c_str()}};
  for (const auto& [key, value] : pairs) {
    result = context < 0 ? context : raw(SYS_fsconfig, context, FSCONFIG_SET_STRING, key, value, 0);
    if (result < 0) failAt(report, Step::configure, result);
  }
  raw(SYS_fsconfig, context, FSCONFIG_SET_FLAG, "userxattr", nullptr, 0);
  result = raw(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  if (result < 0) failAt(report, Step::create, result);
  const std::uint64_t attributes =
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (options.executable ? 0U : std::uint64_t{MOUNT_ATTR_NOEXEC});
  const long mount = raw(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
  // Onto the store's root, as when the sandbox was built: nothing below the overlay can be reached.
  result =
      mount < 0 ? mount : raw(SYS_move_mount, mount, "", store, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  if (result < 0) failAt(report, Step::attach, result);
  for (;;) raw(SYS_exit_group, 0);
}

}  // namespace

Result<void> remountOverlay(int init_pidfd, int layer, const OverlayOptions& options) {
  auto pipe = sys::makePipe(Stage::mounts, "remount");
  if (!pipe) return fail(pipe.error());
  const sys::Fd ours = std::move(pipe->read);
  sys::Fd theirs = std::move(pipe->write);
  const long child = raw(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) remountInside(init_pidfd, layer, options, theirs.get());
  theirs.reset();
  if (child < 0) return fail(sysError(Stage::mounts, "fork", "remount", static_cast<int>(-child)));
  unsigned char message[2] = {};
  // Unmounting waits for the disk, which a payload may keep busy.
  pollfd wait{ours.get(), POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, kTimeoutMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) {
    raw(SYS_kill, child, SIGKILL);
    return fail(sysError(Stage::mounts, "umount2", options.target, ETIMEDOUT, "the disk is overloaded; try again"));
  }
  const ssize_t got = ::read(ours.get(), message, sizeof(message));
  int status = 0;
  while (raw(SYS_wait4, child, &status, 0, nullptr) == -EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof(message)) && message[0] < std::size(kStepNames)) {
    return fail(sysError(Stage::mounts, kStepNames[message[0]], options.target, message[1]));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(plainError(Stage::mounts, "remount", options.target, "the helper process was killed"));
  }
  return {};
}

}  // namespace caisson::session
