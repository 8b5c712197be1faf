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

/// Not the private kind of futex: the payload's process waits too, and the kernel wakes by the other kind.
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

/// The kernel tends to leave a new thread with the processor that made it, and another idle: then what was to be done
/// side by side is done in turn.
void sendElsewhere(int thread) {
  unsigned here = 0;
  std::uint8_t processors[kAffinityBytes] = {};
  const long known = raw(SYS_sched_getaffinity, 0, sizeof(processors), processors);
  if (known <= 0 || raw(SYS_getcpu, &here, nullptr, nullptr) < 0 || here >= sizeof(processors) * 8) return;
  processors[here / 8] = static_cast<std::uint8_t>(processors[here / 8] & ~(1U << (here % 8)));
  raw(SYS_sched_setaffinity, thread, known, processors);  // refused where there is no other
}

/// What pivot_root stacks on the root is what its parent directory is.
bool hasOldRoot() {
  struct stat root, above;
  return raw(SYS_newfstatat, AT_FDCWD, "/", &root, 0) != 0 || raw(SYS_newfstatat, AT_FDCWD, "/..", &above, 0) != 0 ||
         root.st_dev != above.st_dev || root.st_ino != above.st_ino;
}

/// The kernel lets a TCP socket grow to 10 MiB unread, which no memory limit sees on cgroup v1 or without a cgroup.
/// Where /proc/sys is read-only, as in containers, its own values stay.
void boundSocketBuffers(int settings) {
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

void Helper::start() {
  if (!block_.own_network && !block_.own_root) return;
  // Opened here: the thread may find the new root in place of this one, where the settings are read-only.
  if (block_.own_network) {
    settings_ = static_cast<int>(raw(SYS_openat, AT_FDCWD, "/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  }
  // On the stack that pid 1 takes over once this is finished. Descriptors are shared, so that the namespace can be
  // handed over; the working directory and root are not.
  constexpr int kFlags =
      CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const int made = sys::clone(entry, block_.init_stack_top, kFlags, this, &thread_, nullptr, &thread_);
  threaded_ = made > 0;
  if (threaded_) sendElsewhere(made);
  if (!threaded_) makeNetwork();
}

int Helper::entry(void* argument) {
  auto& self = *static_cast<Helper*>(argument);
  self.makeNetwork();
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
  boundSocketBuffers(settings_);
  if (settings_ >= 0) closeFd(settings_);
  if (block_.egress.on) openEgress(block_);
  const long space = must(block_, Stage::namespaces, "ioctl SIOCGSKNS", "", raw(SYS_ioctl, socket, SIOCGSKNS, 0));
  closeFd(socket);
  publish(network_, static_cast<std::int32_t>(space));
}

void Helper::joinNetwork() {
  if (!block_.own_network) return;
  waitWhile(network_, kPending);
  if (threaded_) {
    must(block_, Stage::namespaces, "setns", "network namespace", raw(SYS_setns, network_, CLONE_NEWNET));
  }
  closeFd(network_);
}

void Helper::detachOldRoot() {
  if (threaded_) return publish(old_root_, 0);
  detach();
}

void Helper::detach() const {
  // The working directory of this thread is still the caller's.
  must(block_, Stage::mounts, "chdir", "new root", raw(SYS_chdir, "/"));
  // This thread's root followed pivot_root; what is stacked on "/" is the old one. Gone, the host is unreachable.
  must(block_, Stage::mounts, "umount2", "old root", raw(SYS_umount2, "/", MNT_DETACH));
}

void Helper::waitUntilOldRootIsGone() const {
  // umount2 takes it out of the tree first and then waits until nobody in the kernel looks at it, which takes far
  // longer: that is left to the thread, out of the payload's sight. Where pid 1 is not hidden, or a thread more counts,
  // it has to end first.
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
