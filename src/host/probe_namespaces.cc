// Probes which namespaces and mounts an ordinary user gets, in a child; they disappear when it exits.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "host/probe.h"
#include "host/probe_support.h"
#include "sys/kernel_abi.h"

namespace caisson::host {
namespace {

using sys::attempt, sys::Attempt;

// Everything below runs after fork: system calls and the stack only.

constexpr unsigned kOpenTreeClone = 1;
constexpr unsigned kFsconfigSetFlag = 0;
constexpr unsigned kFsconfigSetString = 1;
constexpr unsigned kFsconfigCmdCreate = 6;
constexpr unsigned kMoveMountFromEmptyPath = 4;
constexpr __u64 kMountAttrReadOnly = 1;
constexpr __u64 kMountAttrSafe = 2 | 4 | 8;  // nosuid, nodev, noexec

struct MountAttr {
  __u64 set, clear, propagation, user_namespace;
};

Attempt writeTo(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return {errno};
  const Attempt outcome = attempt(::write(fd, text, std::strlen(text)));
  ::close(fd);
  return outcome;
}

/// Maps one id, like every unprivileged launch; setgroups must be denied before gid_map may be written.
Attempt writeIdMaps(uid_t uid, gid_t gid) {
  std::array<char, 40> uid_map{};
  std::array<char, 40> gid_map{};
  std::snprintf(uid_map.data(), uid_map.size(), "1000 %u 1", uid);
  std::snprintf(gid_map.data(), gid_map.size(), "1000 %u 1", gid);
  if (const Attempt denied = writeTo("/proc/self/setgroups", "deny"); !denied.ok()) return denied;
  if (const Attempt users = writeTo("/proc/self/uid_map", uid_map.data()); !users.ok()) return users;
  return writeTo("/proc/self/gid_map", gid_map.data());
}

struct MountOption {
  const char* name;
  const char* value;  ///< null: a flag
};

/// Mounts a new file system with the calls that launches use, which a filter may refuse although it allows mount(2).
template <std::size_t kCount>
Attempt mountNew(const char* type, const MountOption (&options)[kCount], const char* target) {
  const int context = static_cast<int>(::syscall(SYS_fsopen, type, 1 /* FSOPEN_CLOEXEC */));
  if (context < 0) return {errno};
  for (const MountOption& option : options) {
    const unsigned command = option.value == nullptr ? kFsconfigSetFlag : kFsconfigSetString;
    if (::syscall(SYS_fsconfig, context, command, option.name, option.value, 0) != 0) return {errno};
  }
  if (::syscall(SYS_fsconfig, context, kFsconfigCmdCreate, nullptr, nullptr, 0) != 0) return {errno};
  const long mount = ::syscall(SYS_fsmount, context, 1 /* FSMOUNT_CLOEXEC */, kMountAttrSafe);
  if (mount < 0) return {errno};
  const Attempt moved = attempt(::syscall(SYS_move_mount, mount, "", AT_FDCWD, target, kMoveMountFromEmptyPath));
  ::close(static_cast<int>(mount));
  ::close(context);
  return moved;
}

Attempt tryFsopen() {
  const long context = ::syscall(SYS_fsopen, "tmpfs", 1 /* FSOPEN_CLOEXEC */);
  if (context < 0) return {errno};
  if (::syscall(SYS_fsconfig, context, kFsconfigCmdCreate, nullptr, nullptr, 0) != 0) return {errno};
  return attempt(::syscall(SYS_fsmount, context, 1 /* FSMOUNT_CLOEXEC */, 0));
}

/// Tries open_tree, mount_setattr and move_mount on the scratch tmpfs: in a user namespace, cloning `/` without the
/// inherited mounts below it fails with EINVAL on every kernel.
void tryOpenTree(NamespaceProbe& probe) {
  const long tree = ::syscall(SYS_open_tree, AT_FDCWD, ".", kOpenTreeClone | O_CLOEXEC);
  probe.open_tree = attempt(tree);
  if (tree < 0) return;
  MountAttr attributes{.set = kMountAttrReadOnly, .clear = 0, .propagation = 0, .user_namespace = 0};
  probe.mount_setattr = attempt(::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes));
  probe.move_mount = attempt(::syscall(SYS_move_mount, tree, "", AT_FDCWD, ".", 4 /* MOVE_MOUNT_F_EMPTY_PATH */));
}

/// Mounts a tmpfs on a directory that every system has; only this child sees it.
const char* mountScratch(NamespaceProbe& probe) {
  for (const char* place : {"/tmp", "/run", "/var", "/mnt"}) {
    probe.mount_tmpfs = mountNew("tmpfs", {{"size", "1m"}}, place);
    if (probe.mount_tmpfs.ok()) return place;
    if (probe.mount_tmpfs.sys_errno != ENOENT && probe.mount_tmpfs.sys_errno != ENOTDIR) return nullptr;
  }
  return nullptr;
}

void tryOnScratch(NamespaceProbe& probe, const char* scratch) {
  if (::chdir(scratch) != 0) return;
  tryOpenTree(probe);
  for (const char* name : {"l", "u", "w", "m", "proc", "root"}) {
    if (::mkdir(name, 0700) != 0) return;
  }
  probe.tmpfs_user_xattr = attempt(::setxattr("u", "user.caisson.probe", "1", 1, 0));
  probe.mount_overlay =
      mountNew("overlay", {{"lowerdir", "l"}, {"upperdir", "u"}, {"workdir", "w"}, {"userxattr", nullptr}}, "m");
}

/// Tries to mount /proc and then pivot_root. Runs as pid 1 of the new PID namespace, which a fresh /proc needs.
void tryAsInit(void* result) {
  auto* probe = static_cast<NamespaceProbe*>(result);
  probe->mount_proc = mountNew("proc", {{"hidepid", "invisible"}}, "proc");
  probe->pivot_root = mountNew("tmpfs", {{"size", "64k"}}, "root");
  if (!probe->pivot_root.ok()) return;
  probe->pivot_root = attempt(::chdir("root"));
  if (probe->pivot_root.ok()) probe->pivot_root = attempt(::syscall(SYS_pivot_root, ".", "."));
}

void tryNamespaces(void* result) {
  auto& probe = *static_cast<NamespaceProbe*>(result);
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  // A process that changed ids is not dumpable, and may not write its own id maps then.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  probe.user = attempt(::unshare(CLONE_NEWUSER));
  if (!probe.user.ok()) return;
  probe.id_map = writeIdMaps(uid, gid);
  if (!probe.id_map.ok()) return;
  probe.mount = attempt(::unshare(CLONE_NEWNS));
  probe.network = attempt(::unshare(CLONE_NEWNET));
  probe.ipc = attempt(::unshare(CLONE_NEWIPC));
  probe.uts = attempt(::unshare(CLONE_NEWUTS));
  probe.cgroup = attempt(::unshare(CLONE_NEWCGROUP));
  probe.pid = attempt(::unshare(CLONE_NEWPID));
  const char* scratch = nullptr;
  if (probe.mount.ok()) {  // a mount namespace of another user namespace: nothing in it reaches the host
    probe.fsopen = tryFsopen();
    scratch = mountScratch(probe);
    if (scratch != nullptr) tryOnScratch(probe, scratch);
  }
  if (probe.pid.ok() && scratch != nullptr) runInChild(tryAsInit, &probe, sizeof probe);
  // Last: later children would be created in it, which no other probe wants.
  if (probe.uts.ok()) probe.hostname = attempt(::sethostname("sandbox", 7));
  probe.time = attempt(::unshare(static_cast<int>(sys::kCloneNewTime)));
}

}  // namespace

NamespaceProbe userNamespaces() { return inChild<NamespaceProbe>(tryNamespaces); }

}  // namespace caisson::host
