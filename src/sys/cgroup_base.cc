// Finds where our cgroups can be made. Changes nothing.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/cgroup.h"
#include "sys/cgroup_files.h"
#include "sys/cgroup_layout.h"
#include "sys/kernel_file.h"

namespace caisson::sys {
namespace {

using Kind = CgroupBase::Kind;

constexpr const char* kMount = "/sys/fs/cgroup";
constexpr const char* kScopeRemedy = "start caisson with `systemd-run --user --scope -p Delegate=yes`";

long fileSystemOf(const char* path) {
  struct statfs status{};
  return ::statfs(path, &status) == 0 ? static_cast<long>(status.f_type) : 0;
}

bool exists(int directory, const char* file) { return ::faccessat(directory, file, F_OK, 0) == 0; }

int accessError(int directory, const char* file, int mode) {
  return ::faccessat(directory, file, mode, AT_EACCESS) == 0 ? 0 : errno;
}

/// Whether we are in the initial cgroup namespace. In any other, a mount made outside it shows directories above ours,
/// and "/" in /proc/self/cgroup is not the mount's root: paths have to be checked.
bool initialCgroupNamespace() {
  constexpr ino_t kInitialInode = 0xEFFFFFFB;  // PROC_CGROUP_INIT_INO, the same on every kernel
  struct stat status{};
  return ::stat("/proc/self/ns/cgroup", &status) == 0 && status.st_ino == kInitialInode;
}

/// One v2 directory that could be the base.
struct Candidate {
  Fd fd;
  std::string path;
  bool ours = false;       ///< owned by this user and writable: mkdir, and moving processes within, are allowed
  bool real_root = false;  ///< of the hierarchy, not only of our cgroup namespace
  bool delegated = false;  ///< marked by systemd; for root, ownership alone proves nothing
  int obstacle = 0;        ///< errno of the access check
};

/// Checks owner, access and delegation of a directory.
Candidate examine(std::string path) {
  Candidate candidate{.fd = openDirectoryAt(AT_FDCWD, path.c_str()), .path = std::move(path)};
  if (!candidate.fd) {
    candidate.obstacle = errno;
    return candidate;
  }
  const int fd = candidate.fd.get();
  struct stat status{};
  const bool owned = ::fstat(fd, &status) == 0 && status.st_uid == ::geteuid();
  candidate.obstacle = accessError(fd, ".", W_OK | X_OK);
  // CLONE_INTO_CGROUP and moves require write access to cgroup.procs of the common ancestor, which is the base.
  if (candidate.obstacle == 0) candidate.obstacle = accessError(fd, "cgroup.procs", W_OK);
  candidate.ours = owned && candidate.obstacle == 0;
  if (!candidate.ours) return candidate;
  candidate.real_root = !exists(fd, "cgroup.type");
  char value[8];
  for (const char* attribute : {"user.delegate", "trusted.delegate"}) {
    const ssize_t length = ::getxattr(candidate.path.c_str(), attribute, value, sizeof(value));
    candidate.delegated = candidate.delegated || (length == 1 && value[0] == '1');
  }
  return candidate;
}

/// Makes the candidate the base, unless its children would have no controller. `may_enable`: we may write
/// subtree_control.
void choose(CgroupBase& base, Candidate candidate, bool may_enable, bool needs_leaf) {
  const int fd = candidate.fd.get();
  const CgroupControllers enabled = parseControllers(readAt(fd, "cgroup.subtree_control").value_or(""), ' ');
  const CgroupControllers available = parseControllers(readAt(fd, "cgroup.controllers").value_or(""), ' ');
  base.usable = may_enable ? enabled | available : enabled;
  base.to_enable = base.usable - enabled;
  base.needs_leaf = needs_leaf;
  if (!any(base.usable)) {
    base.why_not = "cgroup v2: no controller is on for children of " + candidate.path +
                   (any(available) ? ": an administrator can write `+" + namesOf(available) +
                                         "` (each with a plus, separated by spaces) to its cgroup.subtree_control"
                                   : ": its parent delegates none (systemd: Delegate=yes in the unit)");
    return;
  }
  base.kind = Kind::v2;
  base.why_not.clear();
  base.directory = candidate.path;
  if (const CgroupControllers missing = CgroupControllers{true, true, true, true, true} - base.usable; any(missing)) {
    base.why_not = "cgroup v2: not on below " + candidate.path + ": " + namesOf(missing) +
                   " (systemd delegates them to users with Delegate=cpu cpuset io memory pids in user@.service)";
  }
  base.directories.clear();
  base.directories.push_back({.fd = std::move(candidate.fd), .path = candidate.path, .offers = base.usable});
}

/// Why our own cgroup cannot be the base, with the remedy.
std::string explainV2(const Candidate& own, const std::string& shown) {
  if (own.obstacle == EROFS)
    return "cgroup v2: " + own.path + " is mounted read-only (as in most containers): start the container with a " +
           "writable cgroup namespace, or caisson outside";
  if (!own.fd) return "cgroup v2: our own cgroup " + shown + " is not visible under " + kMount;
  if (!own.ours)
    return "cgroup v2: our cgroup " + shown +
           " belongs to another user (for example a login session's scope): " + kScopeRemedy;
  return "cgroup v2: our cgroup " + shown +
         " holds other processes too, so its children can't have limits: " + kScopeRemedy;
}

/// Looks for a v2 base: our own cgroup if it is the hierarchy's root, or was delegated and we are alone in it; else its
/// parent if that is ours; else our own if we are alone in it.
/// `directory` is our own cgroup below `mount`; `shown` is its name in /proc/self/cgroup.
void findV2(CgroupBase& base, const std::string& mount, const std::string& directory, const std::string& shown) {
  Candidate own = examine(directory);
  base.why_not = explainV2(own, shown);
  if (!own.fd) return;
  if (!initialCgroupNamespace() && (own.real_root || !holds(own.fd.get(), ::getpid()))) {
    base.why_not = "cgroup v2: " + directory + " is not our own cgroup: mount cgroup2 anew in this cgroup namespace";
    return;
  }
  if (own.real_root) return choose(base, std::move(own), false, false);
  const bool alone = own.ours && holdsOnly(own.fd.get(), ::getpid());
  // Prefer our own cgroup if it was delegated: a sibling would escape the limits that the administrator set on it.
  if (alone && own.delegated) return choose(base, std::move(own), true, true);
  const std::size_t slash = directory.rfind('/');
  if (directory.size() > mount.size() && slash != std::string::npos && slash >= mount.size()) {
    Candidate parent = examine(directory.substr(0, slash));
    if (parent.ours) {
      // Root owns every cgroup, so ownership does not prove permission to configure: systemd's mark is required.
      const bool may_enable =
          !parent.real_root && (::geteuid() != 0 || parent.delegated) && holdsOnly(parent.fd.get(), -1);
      choose(base, std::move(parent), may_enable, false);
      if (base.kind != Kind::none) return;
    }
  }
  if (alone) choose(base, std::move(own), true, true);
}

/// The usual path of our own cgroup: a v1 mount's directory is named after its controllers, in the kernel's order and
/// spelling.
std::string v1Directory(const OwnCgroup& own) {
  std::string directory = std::string(kMount) + "/" + own.controllers;
  if (own.path != "/") directory += own.path;
  return directory;
}

struct V1Place {
  std::string controllers, directory;
};

/// Our v1 cgroups according to mountinfo, for unusual mount points and mounts that begin below the hierarchy's root
/// (containers). Also tries a v2 hierarchy as the base.
std::vector<V1Place> placesFromMountinfo(std::string_view self_cgroup, CgroupBase& base) {
  std::vector<V1Place> places;
  for (const CgroupHierarchy& one : parseCgroups(readKernelFile("/proc/self/mountinfo"), self_cgroup).hierarchies) {
    if (one.directory.empty()) continue;
    if (!one.v2) {
      places.push_back({one.controllers, one.directory});
    } else if (base.kind == Kind::none) {
      findV2(base, one.directory, one.directory, one.directory);
    }
  }
  return places;
}

/// Adds what `place` offers. Returns 0, or an errno if it is not usable.
int addV1(CgroupBase& base, const V1Place& place) {
  const CgroupControllers offers = parseControllers(place.controllers, ',');
  const bool accounts = listHas(place.controllers, "cpuacct", ',');
  if (!any(offers) && !accounts) return 0;
  Fd fd = openDirectoryAt(AT_FDCWD, place.directory.c_str());
  if (!fd) return errno;
  struct statfs status{};
  if (::fstatfs(fd.get(), &status) != 0 || status.f_type != CGROUP_SUPER_MAGIC) return ENOENT;
  if (const int error = accessError(fd.get(), ".", W_OK | X_OK); error != 0) return error;
  base.usable = base.usable | offers;
  base.directories.push_back(
      {.fd = std::move(fd), .path = place.directory, .offers = offers, .accounts_cpu = accounts});
  return 0;
}

void explainV1(CgroupBase& base, int error) {
  const CgroupControllers missing = CgroupControllers{true, true, true, true, true} - base.usable;
  if (!any(missing)) return base.why_not.clear();
  if (base.kind != Kind::none) {
    base.why_not = "cgroup v1: no directory of ours can be made for " + namesOf(missing);
  } else if (error == EROFS) {
    base.why_not =
        "cgroup v1 is mounted read-only (as in most containers): start the container with writable cgroups, or caisson "
        "outside";
  } else {
    base.why_not =
        "cgroup v1: our cgroups belong to root: run as root, boot the host with cgroup v2 "
        "(systemd.unified_cgroup_hierarchy=1), or let an administrator delegate a cgroup to this user";
  }
}

void findV1(CgroupBase& base, std::string_view self_cgroup) {
  int obstacle = 0;
  bool hidden = !initialCgroupNamespace();
  for (const OwnCgroup& own : parseOwnCgroups(self_cgroup)) {
    if (hidden) break;
    if (own.controllers.empty() || own.controllers.starts_with("name=")) continue;
    const int error = addV1(base, {own.controllers, v1Directory(own)});
    if (error == ENOENT || error == ENOTDIR || error == ELOOP) hidden = true;
    if (error != 0) obstacle = error;
  }
  if (hidden) {
    base.usable = {};
    base.directories.clear();
    for (const V1Place& place : placesFromMountinfo(self_cgroup, base)) {
      if (base.kind == Kind::v2) return;
      if (const int error = addV1(base, place); error != 0) obstacle = error;
    }
  }
  if (any(base.usable)) base.kind = Kind::v1;
  explainV1(base, obstacle);
}

std::string join(const std::string& mount, const std::string& path) { return path == "/" ? mount : mount + path; }

}  // namespace

std::string_view name(CgroupBase::Kind kind) {
  switch (kind) {
    case Kind::none: return "none";
    case Kind::v1: return "v1";
    case Kind::v2: return "v2";
  }
  return "none";
}

CgroupBase CgroupBase::find() {
  CgroupBase base;
  const std::string self = readAt(AT_FDCWD, "/proc/self/cgroup").value_or("");
  std::string own_v2;
  for (const OwnCgroup& own : parseOwnCgroups(self)) {
    if (own.controllers.empty()) own_v2 = own.path;
  }
  const long type = fileSystemOf(kMount);
  if (type == CGROUP2_SUPER_MAGIC && own_v2.starts_with('/') && !own_v2.starts_with("/..")) {
    findV2(base, kMount, join(kMount, own_v2), own_v2);
    if (base.kind == Kind::none && !exists(AT_FDCWD, join(kMount, own_v2).c_str())) placesFromMountinfo(self, base);
  } else if (type == TMPFS_MAGIC) {
    findV1(base, self);
    const std::string unified = std::string(kMount) + "/unified";
    if (base.kind == Kind::none && fileSystemOf(unified.c_str()) == CGROUP2_SUPER_MAGIC && !own_v2.empty()) {
      const std::string why_v1 = base.why_not;
      findV2(base, unified, join(unified, own_v2), own_v2);
      if (base.kind == Kind::none) base.why_not = why_v1;  // a v2 mount without controllers is not the cause
    }
  } else if (!self.empty()) {
    for (const V1Place& place : placesFromMountinfo(self, base)) {
      if (base.kind != Kind::v2) addV1(base, place);
    }
    if (base.kind == Kind::none && any(base.usable)) base.kind = Kind::v1;
  }
  if (base.kind == Kind::none) {
    base.usable = {};
    base.to_enable = {};
    base.needs_leaf = false;
    base.directories.clear();
    if (base.why_not.empty())
      base.why_not = std::string("no cgroup file system is mounted at ") + kMount +
                     ": mount one (`mount -t cgroup2 none " + kMount +
                     "` as root, or --cgroupns and a writable mount for containers)";
    return base;
  }
  const CgroupName own = ownCgroupName();
  base.maker = formatCgroupName(own);
  base.maker_pid = own.pid;
  return base;
}

}  // namespace caisson::sys
