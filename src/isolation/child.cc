#include "isolation/child.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include <cerrno>

#include "isolation/helper.h"
#include "sys/clone.h"
#include "sys/descriptor_limit.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {

namespace {

constexpr int kTriesForRoom = 50;  // one millisecond each

/// Waits for the supervisor's `go`; exits if it is gone. Returns the number of descriptors received into `entries`, if
/// given.
std::size_t waitForGo(const Block& block, int* entries = nullptr) {
  Message message;
  iovec io{&message, sizeof(message)};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxCgroupEntries * sizeof(int))];
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (entries != nullptr) {
    header.msg_control = room;
    header.msg_controllen = sizeof(room);
  }
  const long got = raw(SYS_recvmsg, block.control, &header, MSG_CMSG_CLOEXEC);
  if (got != sizeof(message) || message.kind != MessageKind::go) raw(SYS_exit_group, 125);  // the supervisor is gone
  const cmsghdr* part = CMSG_FIRSTHDR(&header);
  if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) return 0;
  const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  const int* slots = reinterpret_cast<const int*>(CMSG_DATA(part));
  for (std::size_t i = 0; i < count; ++i) entries[i] = slots[i];
  return count;
}

/// Waits at the end of the set-up: meanwhile the supervisor has made the cgroups and the audit record. Then enters the
/// cgroups.
void waitForRelease(const Block& block) {
  int entries[kMaxCgroupEntries];
  const std::size_t count = waitForGo(block, entries);
  for (std::size_t i = 0; i < count; ++i) {
    must(block, Stage::limits, "write", "cgroup tasks", raw(SYS_write, entries[i], "0", 1));
    closeFd(entries[i]);
  }
  if (block.own_cgroup_namespace) {
    must(block, Stage::namespaces, "unshare", "cgroup namespace", raw(SYS_unshare, CLONE_NEWCGROUP));
  }
}

void resetToDefault(int signal) {
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
  } const standard{};
  raw(SYS_rt_sigaction, signal, &standard, nullptr, 8);
}

/// Closes every descriptor except those listed (ignores -1).
void closeAllBut(const int* keep, std::size_t count) {
  unsigned first = 0;
  for (;;) {
    unsigned next = ~0U;
    for (std::size_t i = 0; i < count; ++i) {
      if (keep[i] >= 0 && static_cast<unsigned>(keep[i]) >= first && static_cast<unsigned>(keep[i]) < next) {
        next = static_cast<unsigned>(keep[i]);
      }
    }
    if (next == ~0U) {
      raw(SYS_close_range, first, ~0U, 0);
      return;
    }
    if (next > first) raw(SYS_close_range, first, next - 1, 0);
    first = next + 1;
  }
}

/// Writes the offsets "monotonic -N 0" and "boottime -N 0", with which both clocks start at zero inside; returns their
/// length.
std::size_t describeOffsets(char* text) {
  char* at = text;
  const auto put = [&](const char* words) {
    while (*words != 0) *at++ = *words++;
  };
  const auto putNumber = [&](long value) {
    char digits[24];
    int n = 0;
    do {
      digits[n++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value > 0);
    while (n > 0) *at++ = digits[--n];
  };
  timespec now{};
  raw(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  put("monotonic -");
  putNumber(now.tv_sec);
  put(" 0\nboottime -");
  raw(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  putNumber(now.tv_sec);
  put(" 0\n");
  return static_cast<std::size_t>(at - text);
}

void sendPrepared(const Block& block, const BuiltTree& tree, int master, bool time, int hostname_error) {
  Message message{};
  message.kind = MessageKind::prepared;
  message.quota_error = tree.quota_error;
  message.proc = tree.proc;
  message.hostname_error = hostname_error;
  message.time_namespace = time;
  int descriptors[kMaxSent];
  std::size_t count = 0;
  if (tree.upper >= 0) {
    message.descriptors |= 1;
    descriptors[count++] = tree.upper;
  }
  if (master >= 0) {
    message.descriptors |= 2;
    descriptors[count++] = master;
  }
  message.sized = tree.sized_mask;
  std::uint32_t sized = 0;
  for (std::uint32_t bits = tree.sized_mask; bits != 0; bits &= bits - 1) descriptors[count++] = tree.sized[sized++];
  long sent = sendMessage(block.control, message, descriptors, count);
  if (sent == -ETOOMANYREFS) {
    // The kernel limits descriptors in flight per user, and another process exhausts that limit: the supervisor fetches
    // them instead.
    message.descriptors |= kFetch;
    message.sized = 0;
    message.to_fetch[0] = tree.upper;
    message.to_fetch[1] = master;
    sent = sendMessage(block.control, message, nullptr, 0);
    if (sent >= 0) waitForGo(block);
  }
  must(block, Stage::launch, "sendmsg", "control socket", sent);
  closeFd(tree.upper);
  closeFd(master);
}

struct PayloadStart {
  const Block* block;
  const Helper* helper;
  int terminal;
  Listening* listening;
};

int payloadEntry(void* argument) {
  const auto* start = static_cast<const PayloadStart*>(argument);
  becomePayload(*start->block, *start->helper, start->terminal, *start->listening);
}

/// Enters the time namespace that children of this process enter, which only a single-threaded process may do. Returns
/// an errno, negative, if that failed.
long joinTimeNamespace() {
  const long own = raw(SYS_openat, AT_FDCWD, "/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC, 0);
  if (own < 0) return own;
  const long joined = raw(SYS_setns, own, sys::kCloneNewTime);
  closeFd(static_cast<int>(own));
  return joined;
}

/// Starts the payload's process and returns its pid. Shares memory with it until its exec, so nothing is copied; the
/// child writes only to its own stack and the block. Also shares descriptors: the child creates the filter's listener,
/// but its filter may forbid sending it, so pid 1 sends it. exec gives the child a separate descriptor table.
int startPayload(const Block& block, const Helper& helper, int terminal, bool time, Listening& listening) {
  PayloadStart start{&block, &helper, terminal, &listening};
  constexpr int kFlags = CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD;
  int payload = sys::clone(payloadEntry, block.payload_stack_top, kFlags, &start);
  // EAGAIN: the process limit may have no room beside the helper. The kernel still counts an exited thread for a short
  // time after waiters are woken.
  for (int tries = 0; payload < 0 && errno == EAGAIN && tries < kTriesForRoom; ++tries) {
    helper.waitForEnd();
    const timespec pause{0, tries == 0 ? 0 : 1'000'000};
    raw(SYS_nanosleep, &pause, nullptr);
    payload = sys::clone(payloadEntry, block.payload_stack_top, kFlags, &start);
  }
  if (payload < 0 && errno == EINVAL && time) {
    // Before Linux 6.3, a process that enters another time namespace may not share memory. So pid 1 enters it first.
    helper.waitForEnd();
    must(block, Stage::namespaces, "setns", "time namespace", joinTimeNamespace());
    payload = sys::clone(payloadEntry, block.payload_stack_top, kFlags, &start);
  }
  if (payload < 0) reportAndExit(block, Stage::launch, "clone", "payload", errno);
  return payload;
}

}  // namespace

long openBeneath(int root_fd, const char* path, int flags) {
  if (*path == 0) return raw(SYS_openat, root_fd, ".", flags | O_CLOEXEC, 0);
  sys::OpenHow how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = sys::kResolveBeneath | sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks;
  long fd = raw(SYS_openat2, root_fd, path, &how, sizeof(how));
  if (fd != -ENOSYS && fd != -EPERM) return fd;

  // Without openat2: one component at a time, rejecting links.
  fd = raw(SYS_openat, root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  while (fd >= 0 && *path != 0) {
    char name[256];
    std::size_t n = 0;
    while (path[n] != 0 && path[n] != '/') {
      if (n + 1 >= sizeof(name)) {
        closeFd(static_cast<int>(fd));
        return -ENAMETOOLONG;
      }
      name[n] = path[n];
      ++n;
    }
    name[n] = 0;
    path += n;
    while (*path == '/') ++path;
    if (n == 0 || (n == 1 && name[0] == '.')) continue;
    if (n == 2 && name[0] == '.' && name[1] == '.') {
      closeFd(static_cast<int>(fd));
      return -EXDEV;
    }
    const bool last = *path == 0;
    const int how_flags = last ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW;
    const long next = raw(SYS_openat, fd, name, how_flags | O_CLOEXEC, 0);
    closeFd(static_cast<int>(fd));
    if (next >= 0) {
      struct stat status;
      if (raw(SYS_newfstatat, next, "", &status, AT_EMPTY_PATH) == 0 && S_ISLNK(status.st_mode)) {
        closeFd(static_cast<int>(next));
        return -ELOOP;
      }
    }
    fd = next;
  }
  return fd;
}

bool enterTimeNamespace(const Block& block) {
  if (!block.own_time) return false;
  // A clock that starts with the sandbox hides the host's boot time. Only children enter the namespace; pid 1 stays
  // outside.
  long result = raw(SYS_unshare, sys::kCloneNewTime);
  if (result == 0) {
    const char* path = "/proc/self/timens_offsets";
    const long fd = result = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
      char text[128];
      const std::size_t size = describeOffsets(text);
      result = raw(SYS_write, fd, text, size);
      closeFd(static_cast<int>(fd));
    }
  }
  if (result < 0 && block.require_time) reportAndExit(block, Stage::namespaces, "time namespace", "", -result);
  return result >= 0;
}

namespace {

/// Moves what is needed until exec above the numbers of passed descriptors, which would overwrite it.
void moveAbovePassed(Block& block, int& terminal) {
  const auto move = [&](int& descriptor) {
    if (descriptor < 0) return;
    descriptor = static_cast<int>(
        must(block, Stage::launch, "fcntl", "F_DUPFD", raw(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kMaxPassed + 1)));
  };
  move(block.control);
  for (int& stream : block.stdio) move(stream);
  for (std::uint32_t i = 0; i < block.passed_count; ++i) move(block.passed[i].source);
  move(terminal);
}

/// Closes every descriptor that the payload's start does not need.
void closeUnneeded(const Block& block, int terminal) {
  int keep[5 + kMaxPassed] = {block.control, block.stdio[0], block.stdio[1], block.stdio[2], terminal};
  for (std::uint32_t i = 0; i < block.passed_count; ++i) keep[5 + i] = block.passed[i].source;
  closeAllBut(keep, 5 + block.passed_count);
}

/// Returns why the caller's host name was kept, or 0. Filters of container engines refuse sethostname (EPERM) although
/// the namespace is our own; ENOSYS is what others answer.
int setHostName(const Block& block) {
  const long set = raw(SYS_sethostname, block.hostname, length(block.hostname));
  const bool refused = set == -EPERM || set == -ENOSYS;
  if (!refused || !block.may_keep_hostname) {
    must(block, Stage::namespaces, "sethostname", block.hostname, set, ErrorCode::hostname_refused);
  }
  raw(SYS_setdomainname, "", 0);
  return static_cast<int>(-set);
}

/// Makes a bound /proc read-only: a payload with the caller's uid could change attributes of the caller's processes,
/// such as oom_score_adj. Not earlier, since the offsets of the time namespace are written there.
void protectBoundProc(const Block& block) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  constexpr unsigned kRecursive = 0x8000;
  must(block, Stage::mounts, "mount_setattr", "/proc",
       raw(SYS_mount_setattr, AT_FDCWD, "/proc", kRecursive | AT_SYMLINK_NOFOLLOW, &attributes, sizeof(attributes)));
}

/// A descriptor that reports SIGCHLD, above the numbers that the payload's process sets up in the descriptor table that
/// both share until exec.
int openChildSignals(const Block& block) {
  const std::uint64_t child = 1ULL << (SIGCHLD - 1);
  const long lowest = must(block, Stage::launch, "signalfd4", "", raw(SYS_signalfd4, -1, &child, 8, O_CLOEXEC));
  const int above = block.passed_count > 0 ? kMaxPassed + 1 : 3;
  const long signals = must(block, Stage::launch, "fcntl", "signalfd", raw(SYS_fcntl, lowest, F_DUPFD_CLOEXEC, above));
  closeFd(static_cast<int>(lowest));
  return static_cast<int>(signals);
}

}  // namespace

void runChild(Block& block) {
  closeFd(block.supervisor_end);
  if (block.raise_descriptor_limit) sys::raiseDescriptorLimit();  // before the helper sends the sockets to the egress
  Helper helper(block);
  helper.start();
  raw(SYS_umask, 022);
  resetToDefault(SIGCHLD);  // a caller that ignores SIGCHLD would make the kernel reap the payload
  if (block.parent_writes_maps) {
    waitForGo(block);
  } else if (block.own_user_namespace) {
    writeIdMaps(block);
  }
  if (block.own_mounts && block.open_sources_first) openSources(block, helper);
  becomeInsideUser(block);
  if (block.new_keyring) raw(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  if (block.new_session) must(block, Stage::namespaces, "setsid", "", raw(SYS_setsid));
  const int hostname_error = block.own_uts ? setHostName(block) : 0;
  BuiltTree tree;
  if (block.own_mounts) tree = buildTree(block, helper);
  helper.joinNetwork();
  if (block.host_port_count > 0) openHostPorts(block);
  int master = -1, terminal = -1;
  if (block.wants_terminal) terminal = openTerminal(block, &master);
  const bool time = enterTimeNamespace(block);
  if (tree.protect_proc) protectBoundProc(block);
  waitForRelease(block);
  sendPrepared(block, tree, master, time, hostname_error);
  if (block.init_program.program >= 0) {
    helper.waitForEnd();  // exec would kill it in the middle of its work
    // Before Linux 6.3 exec does not enter it, and the init program could make no thread. Where this is refused, later
    // kernels do without.
    if (time) joinTimeNamespace();
    becomeInitProgram(block);
  }

  if (block.passed_count > 0) {
    helper.waitForEnd();
    moveAbovePassed(block, terminal);
  }
  if (block.close_descriptors) closeUnneeded(block, terminal);
  if (block.subreaper) raw(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // From here on, only a process with privileges over the host can inspect this process; with hidepid the sandbox does
  // not even see it. Must follow writing the id maps, since a non-dumpable process may not write its own /proc files.
  raw(SYS_prctl, PR_SET_DUMPABLE, block.hide_init ? 0 : 1, 0, 0, 0);

  const int signals = openChildSignals(block);  // before the payload exists: nothing that pid 1 needs may fail later
  Listening listening;
  const int payload = startPayload(block, helper, terminal, time, listening);
  handOverListener(block, listening);
  helper.waitForEnd();
  const int own[] = {block.control, signals};
  closeAllBut(own, 2);
  if (block.drop_capabilities) {
    raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // Signals for a payload that has changed its user need this one.
    dropOwnCapabilities(block, block.kept_capabilities & 1U << CAP_KILL);
  }
  becomeInit(block, payload, signals);
}

}  // namespace caisson::isolation
