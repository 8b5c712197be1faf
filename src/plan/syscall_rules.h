// The rules of the built-in filter, as tables and as compile-time code. Shared by syscalls.cc, which adapts them to a
// policy at run time, and builtin_filter.cc, which compiles the unadapted ones with the program.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/syscall_table.h"
#include "plan/syscall_filter.h"

namespace caisson::plan::rules {

using Half = ArgumentTest::Half;
using Kind = ArgumentTest::Kind;

inline constexpr std::string_view kAllowed[] = {
    // files
    "access",
    "chdir",
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
    "getdents",
    "getdents64",
    "getxattr",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "pipe",
    "pipe2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "setxattr",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "tee",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vmsplice",
    "write",
    "writev",
    "cachestat",
    // memory
    "brk",
    "madvise",
    "membarrier",
    "memfd_create",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "remap_file_pages",
    "map_shadow_stack",
    "get_mempolicy",
    "mbind",
    "set_mempolicy",
    "set_mempolicy_home_node",
    // processes and threads
    "arch_prctl",
    "capget",
    "capset",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "get_robust_list",
    "get_thread_area",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "ioprio_get",
    "ioprio_set",
    "kill",
    "pidfd_open",
    "pidfd_send_signal",
    "prctl",
    "process_mrelease",
    "restart_syscall",
    "rseq",
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
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
    "setpgid",
    "setpriority",
    "setrlimit",
    "setsid",
    "tgkill",
    "times",
    "tkill",
    "vfork",
    "wait4",
    "waitid",

    "getcpu",
    // identity
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getresgid",
    "getresuid",
    "getuid",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setuid",
    // signals, time, waiting
    "alarm",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_ctl_old",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "epoll_wait_old",
    "eventfd",
    "eventfd2",
    "futex",
    "futex_requeue",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "getitimer",
    "gettimeofday",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect6",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "select",
    "setitimer",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    // sockets and System V or POSIX messages, all inside namespaces of their own
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedsend",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    "io_cancel",
    "io_destroy",
    "io_getevents",
    "io_pgetevents",
    "io_setup",
    "io_submit",
    // information, and sandboxes that a payload builds around its own children
    "getrandom",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "seccomp",
    "sysinfo",
    "uname",
};

/// Refused with EPERM: the caller learns that it may not, and does not try a second way.
inline constexpr std::string_view kForbidden[] = {
    "_sysctl",
    "acct",
    "add_key",
    "adjtimex",
    "bpf",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "create_module",
    "delete_module",
    "fanotify_init",
    "fanotify_mark",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_kernel_syms",
    "init_module",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "migrate_pages",
    "modify_ldt",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "name_to_handle_at",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "open_tree_attr",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "query_module",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "setdomainname",
    "sethostname",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",

    "umount2",
    "unshare",
    "uselib",
    "userfaultfd",
    "vhangup",
};

/// Refused as if the kernel lacked them: programs have a second way and take it.
/// clone3 and openat2 keep their flags in memory, where a filter can't look.
inline constexpr std::string_view kAbsent[] = {
    "clone3",       "openat2",    "io_uring_setup",    "io_uring_enter",    "io_uring_register", "memfd_secret",
    "statmount",    "listmount",  "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules",  "file_getattr",
    "file_setattr", "setxattrat", "getxattrat",        "listxattrat",       "removexattrat",
};

constexpr std::uint32_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                          CLONE_NEWPID | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */;
constexpr std::uint32_t kSetIdBits = S_ISUID | S_ISGID;
constexpr std::uint32_t kCreateFlags = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
constexpr std::uint32_t kTiocsti = 0x5412;
constexpr std::uint32_t kTioclinux = 0x541c;
constexpr std::uint32_t kSocketTypeMask = 0xf;
constexpr std::uint32_t kRenameWhiteout = 1U << 2;

constexpr ArgumentTest equals(std::uint8_t argument, std::uint32_t want, std::uint32_t mask = 0xffffffff) {
  return {argument, Half::low, Kind::equal, mask, want};
}
constexpr ArgumentTest anyBit(std::uint8_t argument, std::uint32_t mask) {
  return {argument, Half::low, Kind::any_bit, mask, 0};
}
constexpr ArgumentTest highEquals(std::uint8_t argument, std::uint32_t want) {
  return {argument, Half::high, Kind::equal, 0xffffffff, want};
}

/// Collects rules; a later rule for the same call replaces an earlier one.
class Rules {
 public:
  constexpr void set(std::string_view name, Action otherwise, std::vector<Branch> branches = {}) {
    const std::optional<int> number = syscall_table::numberOf(name);
    if (!number) return;
    SyscallRule rule{*number, std::move(branches), otherwise};
    const auto found = std::find_if(rules_.begin(), rules_.end(), [&](auto& r) { return r.number == *number; });
    if (found != rules_.end()) {
      *found = std::move(rule);
    } else {
      rules_.push_back(std::move(rule));
    }
  }
  constexpr void add(std::string_view name, Action action) {  // no look-up: the caller knows that the name is new
    if (const auto number = syscall_table::numberOf(name)) rules_.push_back({*number, {}, action});
  }
  /// Whether a call is allowed, at least in part; `unlisted` is what calls without a rule are.
  constexpr bool allows(std::string_view name, bool unlisted) const {
    const std::optional<int> number = syscall_table::numberOf(name);
    for (const SyscallRule& rule : rules_) {
      if (number && rule.number == *number) return rule.otherwise.kind == ActionKind::allow || !rule.branches.empty();
    }
    return number && unlisted;
  }
  /// Allows a call that no rule knows yet.
  constexpr void allowUnlisted(std::string_view name) {
    const std::optional<int> number = syscall_table::numberOf(name);
    if (!number) return;
    for (SyscallRule& rule : rules_) {
      if (rule.number != *number) continue;
      if (rule.branches.empty()) rule.otherwise = kAllow;
      return;
    }
    rules_.push_back({*number, {}, kAllow});
  }
  constexpr void reserve(std::size_t count) { rules_.reserve(count); }
  constexpr std::vector<SyscallRule> take() { return std::move(rules_); }

 private:
  std::vector<SyscallRule> rules_;
};

/// Calls that are allowed, but not with these arguments.
constexpr void addArgumentRules(Rules& rules) {
  rules.set("clone", kAllow, {{{anyBit(0, kNamespaceFlags & ~0x80U)}, refuse(EPERM)}});
  rules.set("ioctl", kAllow,  // typing into the caller's terminal (CVE-2017-5226), high bits ignored as the kernel does
            {{{equals(1, kTiocsti)}, refuse(EPERM)}, {{equals(1, kTioclinux)}, refuse(EPERM)}});
  rules.set("personality", refuse(EPERM),
            {{{equals(0, 0)}, kAllow},
             {{equals(0, 0x0008)}, kAllow},
             {{equals(0, 0x20000)}, kAllow},
             {{equals(0, 0x20008)}, kAllow},
             {{equals(0, 0xffffffff)}, kAllow}});
  // A payload shares its user id with pid 1; nothing it does may reach the limits or the scheduling of the process that
  // guards it.
  for (const std::string_view name :
       {"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}) {
    rules.set(name, kAllow, {{{equals(0, 1)}, refuse(EPERM)}});
  }
  rules.set("setpriority", kAllow, {{{equals(0, 0), equals(1, 1)}, refuse(EPERM)}});
  rules.set("ioprio_set", kAllow, {{{equals(0, 1), equals(1, 1)}, refuse(EPERM)}});
  // Local and internet sockets; of netlink only what libc needs to list addresses. No raw or packet sockets.
  const Action no_family = refuse(EAFNOSUPPORT);
  rules.set("socket", no_family,
            {{{equals(1, SOCK_RAW, kSocketTypeMask), equals(0, AF_NETLINK), equals(2, 0)}, kAllow},
             {{equals(1, SOCK_RAW, kSocketTypeMask)}, refuse(EPERM)},
             {{equals(1, SOCK_PACKET, kSocketTypeMask)}, refuse(EPERM)},
             {{equals(0, AF_UNIX)}, kAllow},
             {{equals(0, AF_INET)}, kAllow},
             {{equals(0, AF_INET6)}, kAllow},
             {{equals(0, AF_NETLINK), equals(2, 0)}, kAllow}});
  // The overlay's mark for "deleted" is a device; renaming could leave one behind in a directory the host shares.
  rules.set("renameat2", kAllow, {{{anyBit(4, kRenameWhiteout)}, refuse(EPERM)}});
  rules.set("socketpair", no_family, {{{equals(0, AF_UNIX)}, kAllow}});
}

/// No setuid or setgid bit, and no device, can be made in anything the host might share (F11).
constexpr void addModeRules(Rules& rules) {
  rules.set("chmod", kAllow, {{{anyBit(1, kSetIdBits)}, refuse(EPERM)}});
  rules.set("fchmod", kAllow, {{{anyBit(1, kSetIdBits)}, refuse(EPERM)}});
  rules.set("fchmodat", kAllow, {{{anyBit(2, kSetIdBits)}, refuse(EPERM)}});
  rules.set("fchmodat2", kAllow, {{{anyBit(2, kSetIdBits)}, refuse(EPERM)}});
  rules.set("creat", kAllow, {{{anyBit(1, kSetIdBits)}, refuse(EPERM)}});
  rules.set("open", kAllow, {{{anyBit(1, kCreateFlags), anyBit(2, kSetIdBits)}, refuse(EPERM)}});
  rules.set("openat", kAllow, {{{anyBit(2, kCreateFlags), anyBit(3, kSetIdBits)}, refuse(EPERM)}});
  for (const auto& [name, mode] : {std::pair<std::string_view, std::uint8_t>{"mknod", 1}, {"mknodat", 2}}) {
    rules.set(name, kAllow,
              {{{anyBit(mode, kSetIdBits)}, refuse(EPERM)},
               {{equals(mode, S_IFCHR, S_IFMT)}, refuse(EPERM)},  // also 0:0, the overlay's own mark for "deleted"
               {{equals(mode, S_IFBLK, S_IFMT)}, refuse(EPERM)}});
  }
}

/// The built-in allowlist before any policy has a say.
constexpr Rules builtinRules() {
  Rules rules;
  rules.reserve(std::size(kAllowed) + std::size(kForbidden) + std::size(kAbsent) + 20);
  for (const std::string_view name : kAllowed) rules.add(name, kAllow);
  for (const std::string_view name : kForbidden) rules.add(name, refuse(EPERM));
  for (const std::string_view name : kAbsent) rules.add(name, refuse(ENOSYS));
  addArgumentRules(rules);
  addModeRules(rules);
  return rules;
}

}  // namespace caisson::plan::rules
