// A root from an image: our files on top, what hides names of the image, the image's layers, and changes above all.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/tree_builder.h"
#include "plan/image_root.h"

namespace caisson::isolation {
namespace {

// Directories of the store; compile_steps.cc names the first two in the overlay's lower layers.
constexpr const char* kFiles = "files";
constexpr const char* kHidden = "hidden";
constexpr const char* kChanges = "changes";
constexpr const char* kUpper = "changes/upper";
constexpr const char* kWork = "changes/work";

}  // namespace

void TreeBuilder::prepareLayeredRoot(int mount) {
  store_ = mount;
  old_proc_ = must("open", "/proc", raw(SYS_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  for (const char* name : {kFiles, kHidden, kChanges}) must("mkdir", name, raw(SYS_mkdirat, store_, name, 0755));
  root_ = must("open", kFiles, raw(SYS_openat, store_, kFiles, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
}

void TreeBuilder::leaveStore() {
  must("move_mount", "store",
       raw(SYS_move_mount, store_, "", old_proc_, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  closeFd(old_proc_);
  closeFd(store_);
}

void TreeBuilder::attachRootChanges(int mount) {
  must("move_mount", kChanges, raw(SYS_move_mount, mount, "", store_, kChanges, MOVE_MOUNT_F_EMPTY_PATH));
}

void TreeBuilder::rootLayer(const FlatStep& step) {
  const int tree = openSource(step);
  setAttributes(tree, step.source, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY);
  must("mkdir", step.source, raw(SYS_mkdirat, store_, step.target, 0755));
  must("move_mount", step.source, raw(SYS_move_mount, tree, "", store_, step.target, MOVE_MOUNT_F_EMPTY_PATH));
  closeFd(tree);
}

void TreeBuilder::mountRoot(const FlatStep& step) {
  const int hidden = must("open", kHidden, raw(SYS_openat, store_, kHidden, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  for (const char* const* name = step.names; name != nullptr && *name != nullptr; ++name)
    must("hide", *name, raw(SYS_mknodat, hidden, *name, S_IFCHR, 0));
  closeFd(hidden);
  const bool writable = (step.flags & kWritable) != 0;
  for (const char* name : {kUpper, kWork}) {
    const long made = writable ? raw(SYS_mkdirat, store_, name, 0755) : 0;
    if (made != -EEXIST) must("mkdir", name, made);
  }
  must("fchdir", "/", raw(SYS_fchdir, store_));
  // As in overlay(): without `volatile`, the end of the mount would sync the host's whole file system.
  const bool discarded = (step.flags & kKept) == 0;
  const char* writable_options[] = {"lowerdir",  step.lower_names, "upperdir",
                                    kUpper,      "workdir",        kWork,
                                    "userxattr", nullptr,          discarded ? "volatile" : nullptr,
                                    nullptr,     nullptr};
  const char* read_only_options[] = {"lowerdir", step.lower_names, "userxattr", nullptr, nullptr};
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (!writable) attributes |= MOUNT_ATTR_RDONLY;
  if ((step.flags & kExecutable) == 0) attributes |= MOUNT_ATTR_NOEXEC;
  const int mount =
      newFilesystem("overlay", writable ? writable_options : read_only_options, plan::kRootLayers, attributes);
  must("move_mount", "/",
       raw(SYS_move_mount, mount, "", store_, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  closeFd(root_);
  root_ = mount;
}

}  // namespace caisson::isolation
