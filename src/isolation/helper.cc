#include "isolation/helper.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>

#include "isolation/child.h"
#include "sys/clone.h"

namespace caisson::isolation {
namespace {

std::int32_t now(const std::int32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

/// Waits until `word` is not `value`, at most `longest`; may return early. Not a private futex: the payload's process
/// waits too, and the kernel uses the shared kind for CLEARTID.
void waitOnce(const std::int32_t& word, std::int32_t value, const timespec* longest) {
  raw(SYS_futex, &word, FUTEX_WAIT, value, longest, nullptr, 0);
}

void waitWhile(const std::int32_t& word, std::int32_t value) {
  while (now(word) == value) waitOnce(word, value, nullptr);
}

void publish(std::int32_t& word, std::int32_t value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  raw(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/// Moves the thread to another CPU. The kernel tends to keep a new thread on the CPU of its creator even if others are
/// idle; then both would run one after the other instead of in parallel.
void sendElsewhere(int thread) {
  unsigned here = 0;
  std::uint8_t processors[kAffinityBytes] = {};
  const long known = raw(SYS_sched_getaffinity, 0, sizeof(processors), processors);
  if (known <= 0 || raw(SYS_getcpu, &here, nullptr, nullptr) < 0 || here >= sizeof(processors) * 8) return;
  processors[here / 8] = static_cast<std::uint8_t>(processors[here / 8] & ~(1U << (here % 8)));
  raw(SYS_sched_setaffinity, thread, known, processors);  // fails if there is no other CPU
}

/// Whether the old root is still stacked on "/" after pivot_root: then "/.." differs from "/".
bool hasOldRoot() {
  struct stat root, above;
  return raw(SYS_newfstatat, AT_FDCWD, "/", &root, 0) != 0 || raw(SYS_newfstatat, AT_FDCWD, "/..", &above, 0) != 0 ||
         root.st_dev != above.st_dev || root.st_ino != above.st_ino;
}

/// Lowers the limits of TCP buffers to 256 KiB. By default a socket can buffer 10 MiB of unread data, which no memory
/// limit covers on cgroup v1 or without a cgroup. If /proc/sys is read-only, as in containers, the defaults stay.
void boundSocketBuffers(int settings) {
  if (settings < 0) return;
  struct Setting {
    const char *path, *value;
  };
  for (const Setting& one :
       {Setting{"net/ipv4/tcp_wmem", "4096 16384 262144"}, Setting{"net/ipv4/tcp_rmem", "4096 131072 262144"}}) {
    const long file = raw(SYS_openat, settings, one.path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (file < 0) continue;
    raw(SYS_write, file, one.value, length(one.value));
    closeFd(static_cast<int>(file));
  }
}

}  // namespace

int openHostSettings() {
  return static_cast<int>(raw(SYS_openat, AT_FDCWD, "/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
}

void Helper::start() {
  if (!block_.own_network && !block_.own_root) return;
  if (block_.own_network && !block_.own_mounts) useSettings(openHostSettings());
  // Runs on the stack that pid 1 uses after the thread has exited. Shares descriptors, so that the namespace can be
  // passed on, but not the working directory and root.
  constexpr int kFlags =
      CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const int made = sys::clone(entry, block_.init_stack_top, kFlags, this, &thread_, nullptr, &thread_);
  threaded_ = made > 0;
  if (threaded_) sendElsewhere(made);
  if (threaded_) return;
  makeNetwork();
  if (settings_ != kPending) boundSocketBuffers(settings_);
}

int Helper::entry(void* argument) {
  auto& self = *static_cast<Helper*>(argument);
  self.makeNetwork();
  if (self.block_.own_network) {
    waitWhile(self.settings_, kPending);
    boundSocketBuffers(self.settings_);
    publish(self.settings_used_, 0);
  }
  if (self.block_.own_root) {
    waitWhile(self.old_root_, kPending);
    self.detach();
  }
  for (;;) raw(SYS_exit, 0);
}

void Helper::makeNetwork() {
  if (!block_.own_network) return;
  must(block_, Stage::namespaces, "unshare", "network namespace", raw(SYS_unshare, CLONE_NEWNET));
  const int socket = static_cast<int>(
      must(block_, Stage::namespaces, "socket", "AF_INET", raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  if (block_.loopback) bringUpLoopback(block_, socket);
  if (block_.egress.on) openEgress(block_);
  const long space = must(block_, Stage::namespaces, "ioctl SIOCGSKNS", "", raw(SYS_ioctl, socket, SIOCGSKNS, 0));
  closeFd(socket);
  publish(network_, static_cast<std::int32_t>(space));
}

void Helper::joinNetwork() {
  if (!block_.own_network) return;
  waitWhile(network_, kPending);
  if (threaded_) {
    // From here on the thread may open and close no descriptor: pid 1 and the payload's process share its table, and
    // set up descriptors by number.
    waitWhile(settings_used_, kPending);
    must(block_, Stage::namespaces, "setns", "network namespace", raw(SYS_setns, network_, CLONE_NEWNET));
  }
  if (settings_ >= 0) closeFd(settings_);
  closeFd(network_);
}

void Helper::useSettings(int settings) {
  publish(settings_, settings >= 0 ? settings : kNoSettings);
  if (!threaded_ && network_ != kPending) boundSocketBuffers(settings_);
}

void Helper::detachOldRoot() {
  if (threaded_) return publish(old_root_, 0);
  detach();
}

void Helper::detach() const {
  // This thread's working directory is still the caller's.
  must(block_, Stage::mounts, "chdir", "new root", raw(SYS_chdir, "/"));
  // This thread's root followed pivot_root; the mount stacked on "/" is the old root. Without it the host is
  // unreachable.
  must(block_, Stage::mounts, "umount2", "old root", raw(SYS_umount2, "/", MNT_DETACH));
}

void Helper::waitUntilOldRootIsGone() const {
  // umount2 first detaches the mount and then waits for a kernel grace period, which takes far longer. Only the thread
  // waits for that, invisible to the payload. If pid 1 is visible or one more thread matters, wait until it has exited.
  if (!block_.own_root || !block_.hide_init || block_.few_processes) return waitForEnd();
  constexpr timespec kShort{0, 20'000};
  for (;;) {
    const std::int32_t running = now(thread_);
    if (!hasOldRoot()) return;
    if (running == 0) reportAndExit(block_, Stage::self_test, "self-test", "the host's root is still there", EPERM);
    waitOnce(thread_, running, &kShort);
  }
}

void Helper::waitForEnd() const {
  if (!threaded_) return;
  for (std::int32_t running = now(thread_); running != 0; running = now(thread_)) waitWhile(thread_, running);
}

}  // namespace caisson::isolation
