#include "policy/rules/severity.h"

#include <algorithm>
#include <span>

namespace caisson::policy {

namespace {

using Names = std::span<const std::string_view>;

/// Calls that no ordinary program makes: each is a way into the kernel or past every path check.
constexpr std::string_view kCritical[] = {
    "bpf",        "create_module",     "delete_module", "finit_module", "init_module", "kexec_file_load",
    "kexec_load", "open_by_handle_at", "pivot_root",
};

/// Steps of an escape, but also calls that a program's own sandbox, a debugger or a key store tries once or twice.
constexpr std::string_view kHigh[] = {
    "acct",          "add_key",     "chroot",    "clock_settime",  "clone",       "fsconfig",     "fsmount",
    "fsopen",        "fspick",      "ioctl",     "ioperm",         "iopl",        "keyctl",       "mount",
    "mount_setattr", "move_mount",  "open_tree", "open_tree_attr", "pidfd_getfd", "prlimit64",    "ptrace",
    "quotactl",      "quotactl_fd", "reboot",    "request_key",    "setns",       "settimeofday", "swapoff",
    "swapon",        "umount2",     "unshare",
};

constexpr std::string_view kFilesystem[] = {
    "chmod",      "chroot",
    "creat",      "fchmod",
    "fchmodat",   "fchmodat2",
    "fsconfig",   "fsmount",
    "fsopen",     "fspick",
    "mknod",      "mknodat",
    "mount",      "mount_setattr",
    "move_mount", "name_to_handle_at",
    "open",       "open_by_handle_at",
    "open_tree",  "open_tree_attr",
    "openat",     "pivot_root",
    "quotactl",   "quotactl_fd",
    "renameat2",  "swapoff",
    "swapon",     "umount2",
};

constexpr std::string_view kProcess[] = {
    "clone",
    "execve",
    "execveat",
    "fork",
    "ioprio_set",
    "kcmp",
    "migrate_pages",
    "move_pages",
    "pidfd_getfd",
    "prlimit64",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "setns",
    "setpriority",
    "unshare",
    "vfork",
};

constexpr std::string_view kNetwork[] = {"bind", "connect", "socket", "socketpair"};

static_assert(std::ranges::is_sorted(kCritical) && std::ranges::is_sorted(kHigh) &&
              std::ranges::is_sorted(kFilesystem) && std::ranges::is_sorted(kProcess) &&
              std::ranges::is_sorted(kNetwork));

bool holds(const std::optional<std::vector<std::string>>& list, Names standard, std::string_view call) {
  if (list) return std::ranges::find(*list, call) != list->end();
  return std::ranges::binary_search(standard, call);
}

}  // namespace

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::low: return "LOW";
    case Severity::high: return "HIGH";
    case Severity::critical: return "CRITICAL";
  }
  return "";
}

std::string_view name(Indicator indicator) {
  switch (indicator) {
    case Indicator::filesystem: return "FILESYSTEM";
    case Indicator::process: return "PROCESS";
    case Indicator::network: return "NETWORK";
    case Indicator::syscall: return "SYSCALL";
  }
  return "";
}

Severity severityOf(const Syscalls& policy, std::string_view call) {
  if (holds(policy.critical, kCritical, call)) return Severity::critical;
  return holds(policy.high, kHigh, call) ? Severity::high : Severity::low;
}

Indicator indicatorOf(std::string_view call) {
  if (std::ranges::binary_search(kFilesystem, call)) return Indicator::filesystem;
  if (std::ranges::binary_search(kProcess, call)) return Indicator::process;
  if (std::ranges::binary_search(kNetwork, call)) return Indicator::network;
  return Indicator::syscall;
}

Value severityList(const Syscalls& policy, Severity severity) {
  const auto& own = severity == Severity::critical ? policy.critical : policy.high;
  if (own) return *own;
  const Names standard = severity == Severity::critical ? Names(kCritical) : Names(kHigh);
  return std::vector<std::string>(standard.begin(), standard.end());
}

bool loosens(const Syscalls& base, const Syscalls& policy, Severity severity) {
  const Value before = severityList(base, severity);
  return std::ranges::any_of(std::get<std::vector<std::string>>(before), [&](const std::string& call) {
    return severityOf(base, call) == severity && severityOf(policy, call) < severity;
  });
}

}  // namespace caisson::policy
