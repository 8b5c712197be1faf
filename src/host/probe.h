// Probes what this host supports, by trying it.
//
// Configuration can be wrong, so namespaces, mounts, seccomp and cgroups are tried, each in a short-lived child, and
// the errno of each attempt is kept. Sysctls, security modules and signs of a container only explain failures; they
// decide nothing.
//
//   const host::Probes probes = host::probeHost("/home/me/.local/share/caisson");
//   if (!probes.namespaces.network.ok()) explain(probes.namespaces.network.sys_errno);
//
// Leaves nothing behind: no process, mount, file or cgroup. Existing cgroups and mounts are only read; one directory
// below our own cgroup is made and removed. Takes some milliseconds, and 5 s more for each child that hangs. Namespaces
// are probed as the calling user: results for root hold for root only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/attempt.h"
#include "sys/cgroup_layout.h"

namespace caisson::host {

struct KernelVersion {
  int major = 0, minor = 0;
  std::string release;  ///< from uname
  [[nodiscard]] bool atLeast(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};
/// Parses "6.12.3-amd64"; 0.0 if it is not a version.
KernelVersion parseKernelRelease(std::string_view release);

/// Tried in a child; if `user` or `id_map` fails, the rest is not tried. A plain structure, since it is sent through a
/// pipe.
struct NamespaceProbe {
  sys::Attempt user, id_map;
  sys::Attempt mount, network, ipc, uts, cgroup, pid, time;
  sys::Attempt mount_tmpfs, mount_proc, mount_overlay, pivot_root;  ///< in the new namespaces
  sys::Attempt tmpfs_user_xattr;                              ///< Linux 6.6: opaque directories of an overlay on tmpfs
  sys::Attempt fsopen, open_tree, mount_setattr, move_mount;  ///< the new mount API
  sys::Attempt hostname;                                      ///< setting it in the new namespace
};

struct SeccompProbe {
  sys::Attempt filter;         ///< no_new_privs and a filter
  sys::Attempt user_notify;    ///< a filter with a listener
  sys::Attempt wait_killable;  ///< ... that is not interrupted by signals (5.19)
};

struct SyscallProbe {
  sys::Attempt openat2, clone3, pidfd_open, close_range;
};

/// What runs the container that this process is in, by its signs.
enum class Engine : std::uint8_t { none, docker, podman, kubernetes, containerd, nspawn, lxc, caisson, other };
/// "Docker", "a caisson sandbox", ...
std::string_view name(Engine engine);
/// The engine that leaves these signs (Obstacles::container_signs).
Engine engineOf(const std::vector<std::string>& signs);

struct Obstacles {
  std::optional<std::int64_t> max_user_namespaces;                    ///< user.max_user_namespaces
  std::optional<std::int64_t> unprivileged_userns_clone;              ///< kernel.…, Debian's and Arch's patch
  std::optional<std::int64_t> apparmor_restrict_unprivileged_userns;  ///< kernel.…, Ubuntu 23.10 and later
  std::string apparmor_label;                                         ///< our own, "" without AppArmor
  std::string
      apparmor_profile_file;  ///< caisson's profile: the installed one or the packaged one, "" if neither is there
  bool apparmor_profile_disabled = false;     ///< the installed one, by a link in /etc/apparmor.d/disable
  std::string program;                        ///< the path of `caisson`, also in a program that it starts
  std::vector<std::string> security_modules;  ///< active ones; empty if not readable
  std::optional<int> seccomp_mode;            ///< our own: 2 means that a filter is installed
  bool no_new_privileges = false;
  std::vector<std::string> container_signs;  ///< "/.dockerenv", ...; empty outside containers
};

struct DiskProbe {
  std::string path;         ///< the nearest existing directory
  std::string file_system;  ///< "ext4", "overlay", or its magic number
  sys::Attempt writable;    ///< creating an unnamed file
  sys::Attempt user_xattr;  ///< ... and setting a user.* attribute on it, as overlay layers need
  std::uint64_t free_bytes = 0;
  std::uint64_t free_inodes = 0;
  bool counts_inodes = false;  ///< false on btrfs and others
  std::uint64_t total_bytes = 0;
};

struct Probes {
  KernelVersion kernel;
  std::string machine;  ///< "x86_64", "aarch64"
  uid_t uid = 0;
  int landlock_abi = 0;            ///< 0: none, see `landlock`
  sys::Attempt landlock_restrict;  ///< entering a domain, if there is an ABI
  sys::Attempt landlock;           ///< ENOSYS: not built in; EOPNOTSUPP: disabled
  SeccompProbe seccomp;
  NamespaceProbe namespaces;
  SyscallProbe syscalls;
  sys::CgroupProbe cgroup;
  Obstacles obstacles;
  DiskProbe home;
  bool systemd = false;               ///< booted with it
  bool systemd_user_manager = false;  ///< the socket of the user's manager exists
};

/// Probes everything; `state_home` is where caisson would keep its state.
Probes probeHost(const std::string& state_home);

/// Single parts of probeHost(). This one sets `abi`, 0 without Landlock, and returns the attempt to read it.
sys::Attempt landlockAttempt(int& abi);
/// 0 without Landlock.
int landlockAbi();
/// Tries namespaces and mounts as an ordinary launch does.
NamespaceProbe userNamespaces();
/// Installs each kind of filter in a separate child.
SeccompProbe probeSeccomp();
/// Whether a filter can be installed. Tries it in a child.
bool seccompAvailable();
/// The same for a filter with a listener.
bool seccompUserNotify();
/// Calls each of them in this process, without an effect.
SyscallProbe probeSyscalls();
/// The cgroup hierarchies, and whether a child of our own cgroup can be made.
sys::CgroupProbe probeCgroups();
/// Only reads files of /proc and /sys and looks for signs of a container.
Obstacles readObstacles();
/// Of the nearest existing directory to `path`.
DiskProbe probeDisk(const std::string& path);

}  // namespace caisson::host
