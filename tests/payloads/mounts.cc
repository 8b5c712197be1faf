// The mount calls, on a directory that the payload owns: its sandbox's /tmp.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "payload.h"

namespace payload {
namespace {

constexpr const char* kOwn = "/tmp";
constexpr int kEmptyPath = 0x1000;
constexpr unsigned kCloneAll = 1 | 0x8000;  // OPEN_TREE_CLONE, AT_RECURSIVE: includes mounts below

struct Attributes {  // struct mount_attr
  std::uint64_t set = 0, clear = 0, propagation = 0, userns = 0;
};

int tryMount(const Arguments& arguments) {
  const std::string kind = arguments.empty() ? "tmpfs" : arguments[0];
  if (kind == "bind") return report("mount", mount("/", kOwn, nullptr, MS_BIND, nullptr));
  if (kind == "remount") return report("mount", mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND, nullptr));
  return report("mount", mount(kind.c_str(), kOwn, kind.c_str(), 0, nullptr));
}

/// Unmounting a mask would reveal what it hides.
int tryUnmount(const Arguments& arguments) { return report("umount2", umount2(arguments[0].c_str(), MNT_DETACH)); }

int tryFsopen(const Arguments&) { return report("fsopen", syscall(SYS_fsopen, "tmpfs", 0)); }

int tryOpenTree(const Arguments&) { return report("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", kCloneAll)); }

int tryMoveMount(const Arguments&) {
  const long tree = syscall(SYS_open_tree, AT_FDCWD, "/", kCloneAll);
  if (tree < 0) return refused("open_tree");
  return report("move_mount", syscall(SYS_move_mount, tree, "", AT_FDCWD, kOwn, 4 /* F_EMPTY_PATH */));
}

/// Makes the read-only root writable again.
int tryMountSetattr(const Arguments&) {
  Attributes attributes;
  attributes.clear = 1;  // MOUNT_ATTR_RDONLY
  const int root = open("/", O_PATH | O_CLOEXEC);
  return report("mount_setattr", syscall(SYS_mount_setattr, root, "", kEmptyPath, &attributes, sizeof(attributes)));
}

int tryPivotRoot(const Arguments&) {
  if (mount("tmpfs", kOwn, "tmpfs", 0, nullptr) != 0) return refused("mount");
  if (chdir(kOwn) != 0) return refused("chdir");
  return report("pivot_root", syscall(SYS_pivot_root, ".", "."));
}

/// The chroot escape: a second chroot, and `..` from a directory that was left outside.
int tryChroot(const Arguments&) { return report("chroot", chroot(kOwn)); }

constexpr Verb kVerbs[] = {
    {"mount", "[tmpfs|proc|bind|remount]", 0, tryMount},
    {"umount", "PATH", 1, tryUnmount},
    {"fsopen", "", 0, tryFsopen},
    {"open-tree", "", 0, tryOpenTree},
    {"move-mount", "", 0, tryMoveMount},
    {"mount-setattr", "", 0, tryMountSetattr},
    {"pivot-root", "", 0, tryPivotRoot},
    {"chroot", "", 0, tryChroot},
};

}  // namespace

std::span<const Verb> mountVerbs() { return kVerbs; }

}  // namespace payload
