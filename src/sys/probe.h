// Probes what this host supports, by trying it.
//
// Configuration can be wrong, so namespaces, mounts, seccomp and cgroups are tried, each in a short-lived child, and
// the errno of each attempt is kept. Sysctls, security modules and signs of a container only explain failures; they
// decide nothing.
//
//   const sys::Probes probes = sys::probeHost("/home/me/.local/share/caisson");
//   if (!probes.namespaces.network.ok()) explain(probes.namespaces.network.sys_errno);
//
// Leaves nothing behind: no process, mount, file or cgroup. Existing cgroups and mounts are only read; one directory
// below our own cgroup is made and removed. Takes some milliseconds, 10 s if a child hangs. Namespaces are probed as
// the calling user: results for root hold for root only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::sys {

/// Result of one attempt: 0 (success), an errno, or not tried because an earlier step failed.
struct Attempt {
  static constexpr int kNotTried = -1;
  int sys_errno = kNotTried;
  [[nodiscard]] bool ok() const { return sys_errno == 0; }
  [[nodiscard]] bool tried() const { return sys_errno != kNotTried; }
};

struct KernelVersion {
  int major = 0, minor = 0;
  std::string release;  ///< from uname
  [[nodiscard]] bool atLeast(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};
/// Returns 0.0 if it is not a version.
KernelVersion parseKernelRelease(std::string_view release);

/// Tried in one child, in this order; if `user` or `id_map` fails, the rest is not tried. A plain structure, since it
/// is sent through a pipe.
struct NamespaceProbe {
  Attempt user, id_map;
  Attempt mount, network, ipc, uts, cgroup, pid, time;
  Attempt mount_tmpfs, mount_proc, mount_overlay, pivot_root;  ///< in the new namespaces
  Attempt tmpfs_user_xattr;                                    ///< Linux 6.6: opaque directories of an overlay on tmpfs
  Attempt fsopen, open_tree, mount_setattr, move_mount;        ///< the new mount API
};

struct SeccompProbe {
  Attempt filter;         ///< no_new_privs and a filter
  Attempt user_notify;    ///< a filter with a listener
  Attempt wait_killable;  ///< ... that is not interrupted by signals (5.19)
};

struct SyscallProbe {
  Attempt openat2, clone3, pidfd_open, close_range;
};

enum class CgroupLayout : std::uint8_t { none, v1, v2, hybrid };
std::string_view name(CgroupLayout layout);

/// One hierarchy and our own cgroup in it.
struct CgroupHierarchy {
  bool v2 = false;
  std::string controllers;  ///< v1: of the mount ("memory", "cpu,cpuacct"); v2: available to our own cgroup
  std::string directory;    ///< path of our own cgroup; empty if the mount does not show it
  Attempt make_child;       ///< creating and removing a directory below
  bool procs_writable = false;
  std::string subtree_control;  ///< v2: controllers that children of our own cgroup have
};

struct CgroupProbe {
  CgroupLayout layout = CgroupLayout::none;
  std::vector<CgroupHierarchy> hierarchies;
  /// The hierarchy that provides `controller`, or null.
  [[nodiscard]] const CgroupHierarchy* find(std::string_view controller) const;
  /// Whether a child with `controller` could be made.
  [[nodiscard]] bool usable(std::string_view controller) const;
};

/// Pure: parses /proc/self/mountinfo and /proc/self/cgroup. Tries nothing.
CgroupProbe parseCgroups(std::string_view mountinfo, std::string_view self_cgroup);

struct Obstacles {
  std::optional<std::int64_t> max_user_namespaces;                    ///< user.max_user_namespaces
  std::optional<std::int64_t> unprivileged_userns_clone;              ///< kernel.…, Debian's and Arch's patch
  std::optional<std::int64_t> apparmor_restrict_unprivileged_userns;  ///< kernel.…, Ubuntu 23.10 and later
  std::string apparmor_label;                                         ///< our own, "" without AppArmor
  std::vector<std::string> security_modules;                          ///< active ones; empty if not readable
  std::optional<int> seccomp_mode;                                    ///< our own: 2 means that a filter is installed
  bool no_new_privileges = false;
  std::vector<std::string> container_signs;  ///< "/.dockerenv", ...; empty outside containers
};

struct DiskProbe {
  std::string path;         ///< the nearest existing directory
  std::string file_system;  ///< "ext4", "overlay", or its magic number
  Attempt writable;         ///< creating an unnamed file
  Attempt user_xattr;       ///< ... and setting a user.* attribute on it, as overlay layers need
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
  bool counts_inodes = false;  ///< false on btrfs and others
};

struct Probes {
  KernelVersion kernel;
  std::string machine;  ///< "x86_64", "aarch64"
  uid_t uid = 0;
  int landlock_abi = 0;       ///< 0: none, see `landlock`
  Attempt landlock_restrict;  ///< entering a domain, if there is an ABI
  Attempt landlock;           ///< ENOSYS: not built in; EOPNOTSUPP: disabled
  SeccompProbe seccomp;
  NamespaceProbe namespaces;
  SyscallProbe syscalls;
  CgroupProbe cgroup;
  Obstacles obstacles;
  DiskProbe home;
  bool systemd = false;               ///< booted with it
  bool systemd_user_manager = false;  ///< the user's manager answers
};

Probes probeHost(const std::string& state_home);

/// Single parts of probeHost().
Attempt landlockAttempt(int& abi);
int landlockAbi();
NamespaceProbe userNamespaces();
SeccompProbe probeSeccomp();
bool seccompAvailable();
bool seccompUserNotify();
SyscallProbe probeSyscalls();
CgroupProbe probeCgroups();
Obstacles readObstacles();
DiskProbe probeDisk(const std::string& path);

}  // namespace caisson::sys
