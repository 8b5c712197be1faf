// Builds the sandbox's tree from the steps of a block. One file per kind of step: files and mounts (mounts.cc), the
// overlay (overlay.cc), the sandbox's proc (proc.cc), masks (masks.cc).
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

  BuiltTree build();

 private:
  [[noreturn]] void fail(const char* call, const char* object, long error, ErrorCode code = ErrorCode::other) {
    reportAndExit(block_, Stage::mounts, call, object, error < 0 ? -error : error, code);
  }
  int must(const char* call, const char* object, long result, ErrorCode code = ErrorCode::other) {
    if (result < 0) fail(call, object, result, code);
    return static_cast<int>(result);
  }

  void apply(const FlatStep& step);
  void makeDirectory(const FlatStep& step);
  void makeSymlink(const FlatStep& step);
  void makeOptionalSymlink(const FlatStep& step);
  void makeFile(const FlatStep& step);
  void bind(const FlatStep& step);
  void tmpfs(const FlatStep& step);
  void directoryOnDisk(const FlatStep& step);
  void proc(const FlatStep& step);
  void devpts(const FlatStep& step);
  void overlay(const FlatStep& step);
  void fillMaskLayer(int store, const FlatStep& step);
  void mask(const FlatStep& step);
  void maskOthers(int proc, const FlatStep& step);
  void coverFile(const FlatStep& step);
  bool coverByName(const char* name, const FlatStep& step);
  void coverByDescriptor(int file, const FlatStep& step);
  void setKernelQuota(const FlatStep& step);
  void enterRoot();

  int newFilesystem(const char* type, const char* const* options, const char* object, std::uint64_t attributes);
  int newTmpfs(const char* bytes, const char* inodes, mode_t mode, const char* object, std::uint64_t attributes);
  int cloneTree(int fd, const char* path, const char* object);
  void setAttributes(int mount, const char* object, std::uint64_t set);
  void makeParents(const char* target);
  void makeMountPoint(const FlatStep& step, bool directory);
  void makeMountPointBeneath(const char* target, bool directory);
  void attach(int mount, const FlatStep& step);
  int openSource(const FlatStep& step);
  void prepareMasks();
  void removeMaskSources();
  bool isDirectory(int fd, const char* object);

  const Block& block_;
  Helper& helper_;
  int root_ = -1;
  int empty_file_ = -1, empty_directory_ = -1;  // O_PATH, on a tmpfs of ours
  int scratch_ = -1;                            // a writable tmpfs of ours, for the two above
  int quotas_ = -1;                             // /proc/sys/user of the host's proc
  BuiltTree built_;
  std::uint32_t tmpfs_steps_ = 0, sized_count_ = 0;
};

}  // namespace caisson::isolation
