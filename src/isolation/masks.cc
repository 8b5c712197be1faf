// Masks: an empty, unreadable file or directory over a path.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/tree_builder.h"

namespace caisson::isolation {
void TreeBuilder::prepareMasks() {
  if (empty_file_ >= 0) return;
  must("create", "mask", raw(SYS_mknodat, scratch_, ".mask-file", S_IFREG, 0));
  must("create", "mask", raw(SYS_mkdirat, scratch_, ".mask-directory", 0));
  empty_file_ = must("open", "mask", raw(SYS_openat, scratch_, ".mask-file", O_PATH | O_CLOEXEC, 0));
  empty_directory_ = must("open", "mask", raw(SYS_openat, scratch_, ".mask-directory", O_PATH | O_CLOEXEC, 0));
}

void TreeBuilder::removeMaskSources() {
  if (empty_file_ < 0) return;
  raw(SYS_unlinkat, scratch_, ".mask-file", 0);
  raw(SYS_unlinkat, scratch_, ".mask-directory", AT_REMOVEDIR);
  empty_file_ = -1;
}

void TreeBuilder::mask(const FlatStep& step) {
  long point = openBeneath(root_, step.target, O_PATH);
  if (point == -ELOOP && (step.flags & kRefuseLinks) == 0) {
    // The link itself, if it is the last part: without its name, the next run could not tell that what it leads to is
    // secret.
    point = openBeneath(root_, step.target, O_PATH | O_NOFOLLOW);
    if (point == -ELOOP) return;  // what is behind a link is hidden at its own place, or outside
  }
  if (point == -ENOENT || point == -ENOTDIR) {
    if ((step.flags & kAbsentRefuse) != 0) fail("deny", step.target, -ENOENT, ErrorCode::denied_path_missing);
    if ((step.flags & kAbsentCreate) == 0) return;
    makeMountPoint(step, true);
    point = openBeneath(root_, step.target, O_PATH);
  }
  must("open", step.target, point);
  prepareMasks();
  const int source = isDirectory(static_cast<int>(point), step.target) ? empty_directory_ : empty_file_;
  const int tree = cloneTree(source, "", "mask");
  setAttributes(tree, "mask", kMaskAttributes);
  must("move_mount", step.target,
       raw(SYS_move_mount, tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  closeFd(tree);
  closeFd(static_cast<int>(point));
}

}  // namespace caisson::isolation
