// System calls that no policy may allow: they break out of a sandbox, affect the whole kernel, or take arguments that a
// filter cannot check. A policy that allows one is invalid, and every filter denies them.
//
// One name per line keeps diffs to one line. Names that the running architecture lacks are skipped.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace caisson {

/// Denied with EPERM, so that the caller does not try a fallback.
inline constexpr std::string_view kForbiddenCalls[] = {
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

/// Denied with ENOSYS, so that programs use their fallback. clone3 and openat2 take their flags from memory, which a
/// filter cannot read; io_setup fills a machine-wide table (fs.aio-max-nr).
inline constexpr std::string_view kAbsentCalls[] = {
    "clone3",       "openat2",    "io_uring_setup",    "io_uring_enter",    "io_uring_register", "memfd_secret",
    "statmount",    "listmount",  "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules",  "file_getattr",
    "file_setattr", "setxattrat", "getxattrat",        "listxattrat",       "removexattrat",     "io_setup",
    "io_destroy",   "io_submit",  "io_cancel",         "io_getevents",      "io_pgetevents",
};

/// Whether an attempt at this call of kAbsentCalls is recorded. Only io_uring: every thread of the C library tries
/// clone3, for example.
constexpr bool isRecordedAbsence(std::string_view syscall) { return syscall.starts_with("io_uring_"); }

/// Whether this call is in one of the two lists. A policy that allows it is invalid; a denylist may name it.
constexpr bool isNeverAllowed(std::string_view syscall) {
  return std::ranges::find(kForbiddenCalls, syscall) != std::end(kForbiddenCalls) ||
         std::ranges::find(kAbsentCalls, syscall) != std::end(kAbsentCalls);
}

}  // namespace caisson
