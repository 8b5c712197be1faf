// System calls that payloads may make, by family; base/never_allowed_calls.h has those that no policy allows. One name
// per line, so that a change is one line to review. A name that the architecture lacks (open on aarch64) is skipped.
// docs/syscalls.md is generated from these lists.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace caisson::plan::rules {

/// Calls that are allowed for one reason. Some are allowed only with some arguments (syscall_rules.h).
struct CallFamily {
  std::string_view name;
  std::string_view reason;
  std::span<const std::string_view> calls;
};

inline constexpr std::string_view kDataCalls[] = {
    "close",     "close_range", "copy_file_range", "creat",   "dup",       "dup2",    "dup3",     "fadvise64",
    "fallocate", "fcntl",       "fdatasync",       "fsync",   "ftruncate", "ioctl",   "lseek",    "open",
    "openat",    "pipe",        "pipe2",           "pread64", "preadv",    "preadv2", "pwrite64", "pwritev",
    "pwritev2",  "read",        "readahead",       "readv",   "sendfile",  "splice",  "sync",     "sync_file_range",
    "syncfs",    "tee",         "vmsplice",        "write",   "writev",
};

inline constexpr std::string_view kNameCalls[] = {
    "access",    "chdir",     "chmod",      "chown",      "faccessat", "faccessat2", "fchdir",    "fchmod",
    "fchmodat",  "fchmodat2", "fchown",     "fchownat",   "flock",     "fstat",      "fstatfs",   "futimesat",
    "getcwd",    "getdents",  "getdents64", "lchown",     "link",      "linkat",     "lstat",     "mkdir",
    "mkdirat",   "mknod",     "mknodat",    "newfstatat", "readlink",  "readlinkat", "rename",    "renameat",
    "renameat2", "rmdir",     "stat",       "statfs",     "statx",     "symlink",    "symlinkat", "truncate",
    "umask",     "unlink",    "unlinkat",   "utime",      "utimensat", "utimes",
};

inline constexpr std::string_view kXattrCalls[] = {
    "fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "getxattr",    "lgetxattr",
    "listxattr", "llistxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr",
};

inline constexpr std::string_view kInotifyCalls[] = {
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
};

inline constexpr std::string_view kMemoryCalls[] = {
    "brk",      "madvise",    "map_shadow_stack", "membarrier",    "memfd_create", "mincore", "mlock",   "mlock2",
    "mlockall", "mmap",       "mprotect",         "mremap",        "mseal",        "msync",   "munlock", "munlockall",
    "munmap",   "pkey_alloc", "pkey_free",        "pkey_mprotect",
};

inline constexpr std::string_view kNumaCalls[] = {
    "get_mempolicy",
    "mbind",
    "set_mempolicy",
};

inline constexpr std::string_view kProcessCalls[] = {
    "arch_prctl", "capget",    "capset",          "clone",   "execve",          "execveat",        "exit",
    "exit_group", "fork",      "getpgid",         "getpgrp", "getpid",          "getppid",         "getrlimit",
    "getrusage",  "getsid",    "gettid",          "kill",    "personality",     "pidfd_open",      "pidfd_send_signal",
    "prctl",      "prlimit64", "restart_syscall", "rseq",    "set_robust_list", "set_tid_address", "setpgid",
    "setrlimit",  "setsid",    "tgkill",          "times",   "tkill",           "vfork",           "wait4",
    "waitid",
};

inline constexpr std::string_view kScheduleCalls[] = {
    "getcpu",
    "getpriority",
    "ioprio_get",
    "ioprio_set",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "setpriority",
};

inline constexpr std::string_view kIdentityCalls[] = {
    "getegid",  "geteuid", "getgid",    "getgroups", "getresgid", "getresuid", "getuid",   "setfsgid",
    "setfsuid", "setgid",  "setgroups", "setregid",  "setresgid", "setresuid", "setreuid", "setuid",
};

inline constexpr std::string_view kSignalCalls[] = {
    "pause",         "rt_sigaction",    "rt_sigpending",     "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack",    "signalfd",        "signalfd4",
};

inline constexpr std::string_view kTimeCalls[] = {
    "alarm",         "clock_getres",  "clock_gettime",  "clock_nanosleep", "getitimer",       "gettimeofday",
    "nanosleep",     "setitimer",     "time",           "timer_create",    "timer_delete",    "timer_getoverrun",
    "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
};

inline constexpr std::string_view kWaitCalls[] = {
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait",   "epoll_pwait2", "epoll_wait",
    "eventfd",      "eventfd2",      "futex",     "futex_requeue", "futex_wait",   "futex_waitv",
    "futex_wake",   "poll",          "ppoll",     "pselect6",      "select",
};

inline constexpr std::string_view kSocketCalls[] = {
    "accept",   "accept4", "bind",     "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
    "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto",      "setsockopt",  "shutdown",   "socket", "socketpair",
};

inline constexpr std::string_view kIpcCalls[] = {
    "mq_getsetattr", "mq_notify",  "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl",        "msgget",     "msgrcv",  "msgsnd",          "semctl",       "semget",
    "semop",         "semtimedop", "shmat",   "shmctl",          "shmdt",        "shmget",
};

inline constexpr std::string_view kNestedCalls[] = {
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "seccomp",
};

inline constexpr std::string_view kInfoCalls[] = {
    "getrandom",
    "sysinfo",
    "uname",
};

inline constexpr CallFamily kFamilies[] = {
    {"file data", "open, read, write and copy files, pipes and devices", kDataCalls},
    {"file names", "find, make, rename and remove files, read and set their attributes", kNameCalls},
    {"extended attributes", "archives and package managers keep them; the kernel refuses names that need a privilege",
     kXattrCalls},
    {"file events", "watchers of build tools and editors; instances and watches are bounded", kInotifyCalls},
    {"memory", "allocators, loaders, just-in-time compilers and their protection keys", kMemoryCalls},
    {"memory placement", "JVM and databases place memory by node; their own only", kNumaCalls},
    {"processes", "start, wait for and end the payload's own processes and threads", kProcessCalls},
    {"scheduling", "thread pools pin threads and lower their priority; pid 1 is out of reach", kScheduleCalls},
    {"identity", "programs read and drop ids; without capabilities none can be gained", kIdentityCalls},
    {"signals", "handlers, masks and waiting for signals", kSignalCalls},
    {"time", "read clocks, sleep and set timers; no clock can be set", kTimeCalls},
    {"waiting", "event loops and locks", kWaitCalls},
    {"sockets", "local, TCP and UDP sockets inside the sandbox's network namespace", kSocketCalls},
    {"System V and POSIX IPC", "databases and interpreters; objects live in the sandbox's IPC namespace", kIpcCalls},
    {"nested sandboxes", "a payload confines its own children further", kNestedCalls},
    {"information", "random bytes, load and kernel name", kInfoCalls},
};

constexpr std::size_t countAllowedCalls() {
  std::size_t count = 0;
  for (const CallFamily& family : kFamilies) count += family.calls.size();
  return count;
}

constexpr std::array<std::string_view, countAllowedCalls()> flattenFamilies() {
  std::array<std::string_view, countAllowedCalls()> result{};
  std::size_t at = 0;
  for (const CallFamily& family : kFamilies) {
    for (const std::string_view call : family.calls) result[at++] = call;
  }
  return result;
}

inline constexpr auto kAllowed = flattenFamilies();

}  // namespace caisson::plan::rules
