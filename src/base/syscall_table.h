// The table behind syscall_names.h. Constexpr, since the built-in filter is computed at compile time.
#pragma once

#include <asm/unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace caisson::syscall_table {

struct Entry {
  std::string_view name;
  int number;
};

// base/syscall_table.inc is generated at configure time from the compiler's <asm/unistd.h>: one `CAISSON_SYSCALL(name)`
// per line. kNewer lists calls that the oldest supported headers lack; their numbers are the same on every
// architecture.
inline constexpr Entry kFromHeaders[] = {
#define CAISSON_SYSCALL(name) {#name, __NR_##name},
#include "base/syscall_table.inc"
#undef CAISSON_SYSCALL
};

inline constexpr Entry kNewer[] = {
    {"cachestat", 451},         {"fchmodat2", 452},         {"map_shadow_stack", 453}, {"futex_wake", 454},
    {"futex_wait", 455},        {"futex_requeue", 456},     {"statmount", 457},        {"listmount", 458},
    {"lsm_get_self_attr", 459}, {"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
    {"setxattrat", 463},        {"getxattrat", 464},        {"listxattrat", 465},      {"removexattrat", 466},
    {"open_tree_attr", 467},    {"file_getattr", 468},      {"file_setattr", 469},
};

/// Calls that the headers of some supported architecture may lack; sorted. isSyscallName() accepts them everywhere.
inline constexpr std::string_view kElsewhere[] = {
    "_sysctl",
    "access",
    "afs_syscall",
    "alarm",
    "arch_prctl",
    "chmod",
    "chown",
    "clone3",
    "creat",
    "create_module",
    "dup2",
    "epoll_create",
    "epoll_ctl_old",
    "epoll_wait",
    "epoll_wait_old",
    "eventfd",
    "fork",
    "fstat",
    "futimesat",
    "get_kernel_syms",
    "get_thread_area",
    "getdents",
    "getpgrp",
    "getpmsg",
    "getrlimit",
    "inotify_init",
    "ioperm",
    "iopl",
    "lchown",
    "link",
    "lstat",
    "memfd_secret",
    "mkdir",
    "mknod",
    "modify_ldt",
    "newfstatat",
    "open",
    "pause",
    "pipe",
    "poll",
    "putpmsg",
    "query_module",
    "readlink",
    "rename",
    "renameat",
    "rmdir",
    "security",
    "select",
    "set_thread_area",
    "setrlimit",
    "signalfd",
    "stat",
    "symlink",
    "sysfs",
    "time",
    "tuxcall",
    "unlink",
    "uselib",
    "ustat",
    "utime",
    "utimes",
    "vfork",
    "vserver",
};

inline constexpr std::size_t kMaxCalls = std::size(kFromHeaders) + std::size(kNewer);

struct Tables {
  std::array<Entry, kMaxCalls> by_name{};
  std::array<Entry, kMaxCalls> by_number{};
  std::size_t count = 0;  ///< of the valid entries at the start of both arrays
};

consteval Tables makeTables() {
  Tables tables;
  for (const Entry& entry : kFromHeaders) tables.by_name[tables.count++] = entry;
  for (const Entry& entry : kNewer) {
    const bool known = std::ranges::any_of(kFromHeaders, [&](const Entry& other) { return other.name == entry.name; });
    if (!known) tables.by_name[tables.count++] = entry;
  }
  tables.by_number = tables.by_name;
  std::sort(tables.by_name.begin(), tables.by_name.begin() + static_cast<std::ptrdiff_t>(tables.count),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  std::sort(tables.by_number.begin(), tables.by_number.begin() + static_cast<std::ptrdiff_t>(tables.count),
            [](const Entry& a, const Entry& b) { return a.number < b.number; });
  return tables;
}

inline constexpr Tables kTables = makeTables();
static_assert(std::ranges::is_sorted(kElsewhere));

/// As syscallNumber(), at compile time.
constexpr std::optional<int> numberOf(std::string_view name) {
  const auto* const end = kTables.by_name.data() + kTables.count;
  const auto* const found = std::lower_bound(kTables.by_name.data(), end, name,
                                             [](const Entry& e, std::string_view n) { return e.name < n; });
  if (found == end || found->name != name) return std::nullopt;
  return found->number;
}

}  // namespace caisson::syscall_table
