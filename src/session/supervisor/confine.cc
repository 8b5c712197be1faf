#include "session/supervisor/confine.h"

#include <linux/capability.h>
#include <linux/seccomp.h>

#include <cerrno>

#include "plan/own_filter.h"
#include "sys/privileges.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

namespace rules = plan::rules;

constexpr std::string_view kFileCalls[] = {
    "access",
    "chdir",
    "chmod",
    "chown",
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
    "fchmodat2",
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
    "futimesat",
    "getcwd",
    "getdents64",
    "getxattr",
    "inotify_add_watch",
    "inotify_init1",
    "inotify_rm_watch",
    "ioctl",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lseek",
    "lstat",
    "memfd_create",
    "mkdir",
    "mkdirat",
    "mknod",
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
    "symlink",
    "symlinkat",
    "sync_file_range",
    "syncfs",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
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
    "fork",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getpgid",
    "getpgrp",
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
    "vfork",
    "wait4",
    "waitid",
};

/// File capabilities: layers belong to the payload's user and may be closed to others. PERFMON: the CPU clock of a
/// tree.
constexpr std::uint64_t kKeptCapabilities = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
                                            1ULL << CAP_FOWNER | 1ULL << CAP_FSETID | 1ULL << CAP_PERFMON;

}  // namespace

plan::SyscallFilter supervisorFilter(Architecture architecture) {
  rules::Rules list = plan::allowCalls({kFileCalls, kSocketCalls, kWaitCalls, kProcessCalls}, architecture);
  list.set("clone", plan::kAllow, {{{rules::anyBit(0, rules::kNamespaceFlags & ~0x80U)}, plan::refuse(EPERM)}});
  list.set("clone3", plan::refuse(ENOSYS));  // its flags are in memory; libc then falls back to clone
  // Clients, the launcher and the egress; ports of the host's and the sandbox's loopback.
  list.set("socket", plan::refuse(EPERM),
           {{{rules::equals(0, AF_UNIX)}, plan::kAllow}, {{rules::equals(0, AF_INET)}, plan::kAllow}});
  list.set("socketpair", plan::refuse(EPERM), {{{rules::equals(0, AF_UNIX)}, plan::kAllow}});
  return plan::denyUnlisted(std::move(list));
}

Result<void> confineSupervisor() {
  auto dropped = sys::dropCapabilities({.keep = kKeptCapabilities, .bounding = true, .object = "supervisor"});
  if (!dropped) return dropped;
  if (auto forbidden = sys::forbidNewPrivileges(); !forbidden) return forbidden;
  auto program = plan::compile(supervisorFilter());
  if (!program) return fail(program.error());
  const sock_fprog code{static_cast<unsigned short>(program->size()), program->data()};
  const long installed = sys::raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code);
  if (installed < 0) return fail(sysError(Stage::seccomp, "seccomp", "supervisor", static_cast<int>(-installed)));
  return {};
}

}  // namespace caisson::session
