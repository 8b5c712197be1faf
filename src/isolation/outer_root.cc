// A root around the sandbox's, in which an OCI runtime runs.
#include <fcntl.h>
#include <linux/mount.h>

#include "isolation/tree_builder.h"

namespace caisson::isolation {
namespace {

constexpr const char* kOuterBytes = "8388608";
constexpr const char* kOuterInodes = "4096";

}  // namespace

void TreeBuilder::moveRoot(const FlatStep& step) {
  removeMaskSources();
  const int outer = newTmpfs(kOuterBytes, kOuterInodes, 0755, "/", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  // Not on "/": the sandbox's root is stacked there, and a mount cannot be moved below itself. pivot_root takes it away
  // again.
  must("move_mount", "/", raw(SYS_move_mount, outer, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH));
  const int tree = root_;
  root_ = scratch_ = outer;
  makeParents(step.target);
  must("mkdir", step.target, raw(SYS_mkdirat, root_, step.target, 0755));
  must("move_mount", step.target, raw(SYS_move_mount, tree, "", root_, step.target, MOVE_MOUNT_F_EMPTY_PATH));
  closeFd(tree);
}

}  // namespace caisson::isolation
