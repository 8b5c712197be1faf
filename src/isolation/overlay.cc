// The overlay over a workspace: the host's directory below, what is hidden or replaced above it, changes on top.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/tree_builder.h"

namespace caisson::isolation {
namespace {

/// Makes the directories above `name` in the mask layer; `path` becomes its path in the store.
void makeMaskParents(int store, const char* name, char (&path)[4096]) {
  copyText(path, sizeof(path), "mask/");
  copyText(path + 5, sizeof(path) - 5, name);
  for (char* at = path + 5; *at != 0; ++at) {
    if (*at != '/') continue;
    *at = 0;
    raw(SYS_mkdirat, store, path, 0755);
    *at = '/';
  }
}

}  // namespace

void TreeBuilder::fillMaskLayer(int store, const FlatStep& step) {
  if ((step.flags & kMaskInMemory) != 0) {
    const int memory =
        newTmpfs("256m", "4000000", 0755, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    must("move_mount", "mask", raw(SYS_move_mount, memory, "", store, "mask", MOVE_MOUNT_F_EMPTY_PATH));
    closeFd(memory);
  }
  char path[4096];
  for (const char* const* name = step.names; name != nullptr && *name != nullptr; ++name) {
    makeMaskParents(store, *name, path);
    // A whiteout (character device 0:0) hides the name. EEXIST is an error: what is there would stay visible. Only a
    // kept layer may have the whiteout from an earlier start.
    const long masked = raw(SYS_mknodat, store, path, S_IFCHR, 0);
    if (masked != -EEXIST || (step.flags & kKept) == 0) must("mask", *name, masked);
  }
  for (const char* const* name = step.replaced; name != nullptr && *name != nullptr; name += 2) {
    makeMaskParents(store, *name, path);
    raw(SYS_unlinkat, store, path, 0);  // of an earlier start of the session
    const int file = must("create", *name, raw(SYS_openat, store, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    const std::size_t bytes = length(name[1]);
    if (must("write", *name, raw(SYS_write, file, name[1], bytes)) != static_cast<long>(bytes))
      fail("write", *name, -EIO);
    closeFd(file);
  }
}

bool TreeBuilder::hideStore(int store) {
  // An OCI runtime mounts a proc in the namespace that this one leaves, which the kernel refuses if one is covered.
  for (std::uint32_t i = 0; i < block_.step_count; ++i)
    if (block_.steps[i].kind == StepKind::move_root) return false;
  // A part of the old root that no later step reads. Unmounting the store would wait for a grace period of the kernel.
  const long place = raw(SYS_openat, AT_FDCWD, "/proc/fs", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (place < 0) return false;
  const long moved = raw(SYS_move_mount, store, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  closeFd(static_cast<int>(place));
  return moved == 0;
}

void TreeBuilder::overlay(const FlatStep& step) {
  int lower = step.mount_fd;
  if (lower < 0) {
    FlatStep source = step;
    source.flags = kCanonical;
    lower = openSource(source);
  }
  int store;
  makeMountPoint(step, true);
  if ((step.flags & kOnDisk) != 0) {
    FlatStep source{};
    source.source = block_.store_path;
    source.flags = kCanonical;
    source.mount_fd = block_.store_mount;
    store = openSource(source);
    setAttributes(store, "overlay store", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  } else {
    store = newTmpfs(step.size_text, step.inode_text, 0755, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  }
  attach(store, step);
  const auto any = [](const char* const* list) { return list != nullptr && *list != nullptr; };
  const bool masks = any(step.names) || any(step.replaced) || (step.flags & (kKept | kReadOnlyOverlay)) != 0;
  for (const char* name : {"lower", masks ? "mask" : nullptr, step.upper_name, step.work_name}) {
    if (name == nullptr) continue;
    const long made = raw(SYS_mkdirat, store, name, 0755);
    if (made != -EEXIST) must("mkdir", name, made);
  }
  setAttributes(lower, step.source, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY);
  must("move_mount", "lower", raw(SYS_move_mount, lower, "", store, "lower", MOVE_MOUNT_F_EMPTY_PATH));
  closeFd(lower);
  fillMaskLayer(store, step);
  must("fchdir", step.target, raw(SYS_fchdir, store));
  const bool read_only = (step.flags & kReadOnlyOverlay) != 0;
  // Without `volatile` the end of the mount syncs the host's whole file system. A run's changes are discarded anyway.
  const bool discarded = (step.flags & kOnDisk) != 0 && (step.flags & kKept) == 0;
  const char* writable_options[] = {"lowerdir",      step.lower_names, "upperdir",
                                    step.upper_name, "workdir",        step.work_name,
                                    "userxattr",     nullptr,          discarded ? "volatile" : nullptr,
                                    nullptr,         nullptr};
  const char* read_only_options[] = {"lowerdir", step.lower_names, "userxattr", nullptr, nullptr};
  const char* const* options = read_only ? read_only_options : writable_options;
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (read_only) attributes |= MOUNT_ATTR_RDONLY;
  if ((step.flags & kExecutable) == 0) attributes |= MOUNT_ATTR_NOEXEC;
  const int mount = newFilesystem("overlay", options, step.source, attributes);
  if (!read_only) {
    built_.upper =
        must("open", "upper", raw(SYS_openat, store, step.upper_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  }
  if ((step.flags & kKept) == 0 && hideStore(store)) {
    attach(mount, step);
  } else {
    // Onto the store's own root, which is what the mount point shows now; remount.cc relies on that.
    must("move_mount", step.target,
         raw(SYS_move_mount, mount, "", store, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  }
  closeFd(mount);
  closeFd(store);
}

}  // namespace caisson::isolation
