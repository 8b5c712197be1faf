// Builds the sandbox's tree from the steps of a block. One file per kind of step: files and mounts (mounts.cc), the
// overlay (overlay.cc), a layered root (layered_root.cc), a root around it (outer_root.cc), the sandbox's proc
// (proc.cc), masks (masks.cc).
//
// Nothing below the new root is named by a string that a link could redirect (runc CVE-2021-30465,
// CVE-2025-31133): sources that a person named were resolved by us and are opened again without following
// any link, targets are opened below the new root without following any link, and mounts go from descriptor
// to descriptor. The new root is stacked on "/" of our own mount namespace: lookups of absolute paths still
// start below it, so every host path stays reachable by its own name until pivot_root.
#pragma once

#include <fcntl.h>
#include <linux/mount.h>

#include "isolation/child.h"
#include "isolation/helper.h"

namespace caisson::isolation {

inline constexpr std::uint64_t kMaskAttributes =
    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

inline bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

class TreeBuilder {
 public:
  TreeBuilder(const Block& block, Helper& helper) : block_(block), helper_(helper) {}

  /// Applies all steps in order and enters the new root, if the block has one. Exits on failure.
  BuiltTree build();
  /// Opens what build() would open on the host; see openSources() in child.h.
  void openSources(Block& block);

 private:
  [[noreturn]] void fail(const char* call, const char* object, long error, ErrorCode code = ErrorCode::other) {
    reportAndExit(block_, Stage::mounts, call, object, error < 0 ? -error : error, code);
  }
  int must(const char* call, const char* object, long result, ErrorCode code = ErrorCode::other) {
    if (result < 0) fail(call, object, result, code);
    return static_cast<int>(result);
  }

  /// Calls the function below for the kind of step. The functions for steps are named like their kind in plan.h.
  void apply(const FlatStep& step);
  /// Makes the parents, too; keeps a directory that exists.
  void makeDirectory(const FlatStep& step);
  /// Its directory must exist, and the link must not, unless the step is optional.
  void makeSymlink(const FlatStep& step);
  /// Makes the parents too, from descriptor to descriptor: an absolute link in the path would lead to the host. Skips
  /// what exists or cannot be made.
  void makeOptionalSymlink(const FlatStep& step);
  /// Creates a new file in an existing directory.
  void makeFile(const FlatStep& step);
  /// Mounts a copy of the source's mount at the target, with the step's attributes except for devices; "" makes it the
  /// new root. Skips an optional source that is absent.
  void bind(const FlatStep& step);
  /// Mounts a new tmpfs, or calls directoryOnDisk(); "" makes it the new root. Skips an optional one whose target is
  /// absent.
  void tmpfs(const FlatStep& step);
  /// A size-limited directory on disk, as a separate mount: it can be noexec, and its attributes are not those of the
  /// host's file system.
  void directoryOnDisk(const FlatStep& step);
  /// Mounts a proc of the sandbox's pid namespace, or the weaker one that the step allows, with the masks that the step
  /// asks for.
  void proc(const FlatStep& step);
  /// The proc as a detached mount; notes in built_ which rung it is.
  int openProc(const FlatStep& step);
  /// A new proc; -EPERM: the kernel refuses it, since parts of the caller's are covered.
  long freshProc(const FlatStep& step, bool subset);
  /// A copy of the caller's proc, with everything that is mounted on it.
  int boundProc();
  /// Mounts a new devpts instance.
  void devpts(const FlatStep& step);
  /// Stacks the store, the lower tree and the overlay on one mount point: the overlay is on top, so the payload reaches
  /// nothing below it, and nothing needs to be unmounted.
  void overlay(const FlatStep& step);
  /// Fills the layer above the host's directory: whiteouts hide names, files replace others.
  void fillMaskLayer(int store, const FlatStep& step);
  /// Moves the store of an overlay, which holds its layers itself, out of the new root: mounted in it, it would show in
  /// /proc/self/mountinfo where the workspace and the store are on the host. False: there is no place for it.
  bool hideStore(int store);
  /// Makes the tmpfs the store of a layered root: root_ becomes the directory for our own files in it.
  void prepareLayeredRoot(int mount);
  void attachRootChanges(int mount);
  /// Moves the store, on which the overlay was stacked, into the old root: it is detached with that.
  void leaveStore();
  /// Mounts a layer of the root in the store, read-only.
  void rootLayer(const FlatStep& step);
  /// Stacks an overlay of our files, of what hides names, and of the layers on the store; it becomes the new root.
  void mountRoot(const FlatStep& step);
  /// Puts the tree that was built so far into a new root, a tmpfs (outer_root.cc).
  void moveRoot(const FlatStep& step);
  /// Covers the target with an empty, unreadable file or directory. MaskPath says what happens if it is absent or a
  /// link.
  void mask(const FlatStep& step);
  /// Masks every file and directory of the new proc that is neither in `names` nor a process.
  void maskOthers(int proc, const FlatStep& step);
  /// Covers an existing file with a read-only one with the step's content; skips an absent one.
  void coverFile(const FlatStep& step);
  /// Mounts the file `name` of the scratch directory over the target, by path; skips an absent target. Works only in a
  /// root that no payload has written to. False: use coverByDescriptor().
  bool coverByName(const char* name, const FlatStep& step);
  /// The same without following a link, in any tree; skips an absent target.
  void coverByDescriptor(int file, const FlatStep& step);
  /// /proc/sys of the sandbox's proc, writable and not yet covered; if that is not a complete one, the host's. In the
  /// host's proc the entries of all namespaces share hash chains: each lookup takes a lock of every live sandbox.
  int openSettings();
  /// Writes a limit of the sandbox's user namespace, which also bounds its share of the caller's account. A failure, as
  /// in containers with a read-only /proc/sys, only goes into the result.
  void setKernelQuota(const FlatStep& step);
  /// pivot_root into root_; the helper thread detaches the old root.
  void enterRoot();

  /// Creates a detached mount. `options`: pairs of name and value (null: a flag), ended by null; `object` is for
  /// errors.
  int newFilesystem(const char* type, const char* const* options, const char* object, std::uint64_t attributes);
  /// The file system of such a mount, as a context for fsmount.
  int newContext(const char* type, const char* const* options, const char* object);
  /// A detached tmpfs; `bytes` and `inodes` are decimal limits.
  int newTmpfs(const char* bytes, const char* inodes, mode_t mode, const char* object, std::uint64_t attributes);
  /// A detached copy of the mount at `path` below `fd` ("": `fd` itself), with the mounts below it.
  int cloneTree(int fd, const char* path, const char* object);
  /// Adds and clears mount attributes of a detached tree and makes it private.
  void setAttributes(int mount, const char* object, std::uint64_t set, std::uint64_t clear = 0);
  /// Creates the missing directories above `target`; ignores errors.
  void makeParents(const char* target);
  /// Creates the target, an empty file or a directory, with its parents, unless it exists.
  void makeMountPoint(const FlatStep& step, bool directory);
  /// As makeMountPoint(), in a tree that a payload may have written: follows no link.
  void makeMountPointBeneath(const char* target, bool directory, mode_t mode = 0755);
  /// The directory of the step's target, which is made if it is missing, and the last part of the target. Follows no
  /// link.
  int openParent(const FlatStep& step, const char** name);
  /// Moves a detached mount to the step's target, which must exist.
  void attach(int mount, const FlatStep& step);
  /// The source as a detached mount: the one that the parent prepared, else a copy. -1 when it is optional and absent.
  int openSource(const FlatStep& step);
  /// Whether the name that an optional bind covers with something else of the new root does not exist.
  [[nodiscard]] bool isMissing(const FlatStep& step) const;
  /// Creates the empty file and directory that masks are copies of, once.
  void prepareMasks();
  /// Removes their names before the payload can see them; the mounted masks stay.
  void removeMaskSources();
  bool isDirectory(int fd, const char* object);

  const Block& block_;
  Helper& helper_;
  int root_ = -1;                               ///< the new root, a mount
  int empty_file_ = -1, empty_directory_ = -1;  // O_PATH, on a tmpfs of ours
  int scratch_ = -1;                            // a writable tmpfs of ours, for the two above and for coverFile()
  int store_ = -1;                              // of a layered root
  int old_proc_ = -1;                           // a directory of the old root
  int settings_ = -1;                           // see openSettings()
  int quotas_ = -1;                             // its directory `user`
  BuiltTree built_;
  std::uint32_t tmpfs_steps_ = 0, sized_count_ = 0;  ///< tmpfs steps so far; entries of built_.sized
};

}  // namespace caisson::isolation
