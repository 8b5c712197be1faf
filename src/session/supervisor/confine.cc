#include "session/supervisor/confine.h"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>

#include "plan/own_filter.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

namespace rules = plan::rules;

constexpr std::string_view kFileCalls[] = {
    "access",
    "chdir",
    "close",
    "close_range",
    "copy_file_range",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "getcwd",
    "getdents64",
    "getxattr",
    "inotify_add_watch",
    "inotify_init1",
    "inotify_rm_watch",
    "ioctl",
    "lgetxattr",
    "linkat",
    "listxattr",
    "llistxattr",
    "lseek",
    "lstat",
    "memfd_create",
    "mkdir",
    "mkdirat",
    "mknodat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pipe",
    "pipe2",
    "pread64",
    "preadv",
    "pwrite64",
    "pwritev",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlinkat",
    "sync_file_range",
    "syncfs",
    "umask",
    "unlink",
    "unlinkat",
    "utimensat",
    "write",
    "writev",
};

constexpr std::string_view kSocketCalls[] = {
    "accept", "accept4",  "bind",    "connect", "getpeername", "getsockname", "getsockopt",
    "listen", "recvfrom", "recvmsg", "sendmsg", "sendto",      "setsockopt",  "shutdown",
};

constexpr std::string_view kWaitCalls[] = {
    "clock_getres",   "clock_gettime",  "clock_nanosleep", "epoll_create1",   "epoll_ctl",    "epoll_pwait",
    "epoll_pwait2",   "epoll_wait",     "eventfd2",        "futex",           "gettimeofday", "nanosleep",
    "poll",           "ppoll",          "pselect6",        "restart_syscall", "rt_sigaction", "rt_sigpending",
    "rt_sigprocmask", "rt_sigreturn",   "rt_sigtimedwait", "select",          "sigaltstack",  "signalfd4",
    "time",           "timerfd_create", "timerfd_settime",
};

constexpr std::string_view kProcessCalls[] = {
    "brk",
    "capget",
    "exit",
    "exit_group",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getpgid",
    "getpid",
    "getppid",
    "getrandom",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "getuid",
    "kill",
    "madvise",
    "membarrier",
    "mremap",
    "munmap",
    "perf_event_open",
    "pidfd_getfd",
    "pidfd_open",
    "pidfd_send_signal",
    "prctl",
    "prlimit64",
    "process_vm_readv",
    "rseq",
    "sched_getaffinity",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    "setpgid",
    "setrlimit",
    "setsid",
    "sysinfo",
    "tgkill",
    "uname",
    "wait4",
    "waitid",
};

/// File capabilities: layers belong to the payload's user and may be closed to others. PERFMON: the CPU clock of a
/// tree.
constexpr std::uint64_t kKeptCapabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
                                            1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_PERFMON;

Result<void> dropCapabilities() {
  struct {
    std::uint32_t version;
    int pid;
  } const header{sys::kCapabilityVersion3, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } sets[2] = {};
  if (const long got = sys::raw(SYS_capget, &header, sets); got < 0) {
    return fail(sysError(Stage::identity, "capget", "supervisor", static_cast<int>(-got)));
  }
  // The bounding set first: shrinking it needs a capability that the last step drops.
  for (int capability = 0; capability < 64; ++capability) {
    if ((kKeptCapabilities >> capability & 1U) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;  // past the last one, or not root
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int half = 0; half < 2; ++half) {
    sets[half].permitted &= static_cast<std::uint32_t>(kKeptCapabilities >> (32 * half));
    sets[half].effective = sets[half].permitted;
    sets[half].inheritable = 0;
  }
  if (const long set = sys::raw(SYS_capset, &header, sets); set < 0) {
    return fail(sysError(Stage::identity, "capset", "supervisor", static_cast<int>(-set)));
  }
  return {};
}

}  // namespace

plan::SyscallFilter supervisorFilter() {
  rules::Rules list = plan::allowCalls({kFileCalls, kSocketCalls, kWaitCalls, kProcessCalls});
  list.set("clone", plan::kAllow, {{{rules::anyBit(0, rules::kNamespaceFlags & ~0x80U)}, plan::refuse(EPERM)}});
  list.set("clone3", plan::refuse(ENOSYS));  // its flags are in memory; libc then falls back to clone
  // Clients, the launcher and the egress; ports of the host's and the sandbox's loopback.
  list.set("socket", plan::refuse(EPERM),
           {{{rules::equals(0, AF_UNIX)}, plan::kAllow}, {{rules::equals(0, AF_INET)}, plan::kAllow}});
  list.set("socketpair", plan::refuse(EPERM), {{{rules::equals(0, AF_UNIX)}, plan::kAllow}});
  return plan::denyUnlisted(std::move(list));
}

Result<void> confineSupervisor() {
  if (auto dropped = dropCapabilities(); !dropped) return dropped;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return fail(sysError(Stage::identity, "prctl", "PR_SET_NO_NEW_PRIVS", errno));
  }
  auto program = plan::compile(supervisorFilter());
  if (!program) return fail(program.error());
  const sock_fprog code{static_cast<unsigned short>(program->size()), program->data()};
  const long installed = sys::raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code);
  if (installed < 0) return fail(sysError(Stage::seccomp, "seccomp", "supervisor", static_cast<int>(-installed)));
  return {};
}

}  // namespace caisson::session
