// The files, directories and mounts of the sandbox's tree, and the way into it.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/tree_builder.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {
namespace {

constexpr int kAtRecursive = 0x8000;
constexpr int kAtEmptyPath = 0x1000;
constexpr unsigned kOpenTreeClone = 1;
constexpr unsigned kOpenTreeCloexec = O_CLOEXEC;
constexpr std::uint64_t kPrivate = 1U << 18;  // MS_PRIVATE

struct Attributes {  // struct mount_attr
  std::uint64_t set, clear, propagation, userns;
};

/// A second view of a path of the new root, with the attributes of what is mounted there.
bool isCopy(const FlatStep& step) {
  return (step.flags & (kInside | kCanonical)) == (kInside | kCanonical) && !same(step.source + 1, step.target);
}

std::uint64_t attributesOf(const FlatStep& step) {
  std::uint64_t set = MOUNT_ATTR_NOSUID;
  if ((step.flags & kWritable) == 0) set |= MOUNT_ATTR_RDONLY;
  if ((step.flags & kExecutable) == 0) set |= MOUNT_ATTR_NOEXEC;
  if ((step.flags & kDevices) == 0) set |= MOUNT_ATTR_NODEV;
  return set;
}

}  // namespace

int TreeBuilder::newContext(const char* type, const char* const* options, const char* object) {
  const int context = must("fsopen", type, raw(SYS_fsopen, type, FSOPEN_CLOEXEC));
  for (; options[0] != nullptr; options += 2) {
    const unsigned command = options[1] == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    must("fsconfig", options[0], raw(SYS_fsconfig, context, command, options[0], options[1], 0));
  }
  must("fsconfig create", object, raw(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0),
       ErrorCode::file_system_refused);
  return context;
}

int TreeBuilder::newFilesystem(const char* type, const char* const* options, const char* object,
                               std::uint64_t attributes) {
  const int context = newContext(type, options, object);
  const int mount = must("fsmount", object, raw(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes));
  closeFd(context);
  return mount;
}

int TreeBuilder::newTmpfs(const char* bytes, const char* inodes, mode_t mode, const char* object,
                          std::uint64_t attributes) {
  char octal[6] = {};
  for (int i = 4; i >= 0; --i, mode >>= 3) octal[i] = static_cast<char>('0' + (mode & 7));
  const char* options[] = {"size", bytes, "nr_inodes", inodes, "mode", octal, nullptr};
  return newFilesystem("tmpfs", options, object, attributes);
}

int TreeBuilder::cloneTree(int fd, const char* path, const char* object) {
  const unsigned flags = kOpenTreeClone | kOpenTreeCloexec | kAtRecursive | (*path == 0 ? kAtEmptyPath : 0);
  return must("open_tree", object, raw(SYS_open_tree, fd, path, flags));
}

void TreeBuilder::setAttributes(int mount, const char* object, std::uint64_t set, std::uint64_t clear) {
  // Private as well: what the host mounts later must not appear in here.
  Attributes attributes{set, clear, kPrivate, 0};
  must("mount_setattr", object,
       raw(SYS_mount_setattr, mount, "", kAtEmptyPath | kAtRecursive, &attributes, sizeof(attributes)));
}

void TreeBuilder::makeParents(const char* target) {
  char path[4096];
  copyText(path, sizeof(path), target);
  for (char* at = path; *at != 0; ++at) {
    if (*at != '/') continue;
    *at = 0;
    raw(SYS_mkdirat, root_, path, 0755);
    *at = '/';
  }
}

void TreeBuilder::makeMountPointBeneath(const char* target, bool directory, mode_t mode) {
  char path[4096];
  copyText(path, sizeof(path), target);
  int parent = root_;
  char* name = path;
  for (char* at = path;; ++at) {
    const bool last = *at == 0;
    if (!last && *at != '/') continue;
    *at = 0;
    const long made = !last || directory ? raw(SYS_mkdirat, parent, name, last ? mode : 0755)
                                         : raw(SYS_mknodat, parent, name, S_IFREG | 0444, 0);
    if (made != 0 && made != -EEXIST && made != -EROFS) fail("make mount point", target, made);
    if (last) break;
    const long next = openBeneath(parent, name, O_PATH | O_DIRECTORY);
    if (parent != root_) closeFd(parent);
    parent = must("open mount point", target, next);
    name = at + 1;
  }
  if (parent != root_) closeFd(parent);
}

void TreeBuilder::makeMountPoint(const FlatStep& step, bool directory) {
  const char* target = step.target;
  if (*target == 0) return;
  if ((step.flags & kOurs) == 0) return makeMountPointBeneath(target, directory);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const long made =
        directory ? raw(SYS_mkdirat, root_, target, 0755) : raw(SYS_mknodat, root_, target, S_IFREG | 0444, 0);
    if (made == 0 || made == -EEXIST || made == -EROFS) return;  // in a read-only tree it must be there already
    if (made != -ENOENT || attempt == 1) fail("make mount point", target, made);
    makeParents(target);
  }
}

void TreeBuilder::attach(int mount, const FlatStep& step) {
  const char* target = step.target;
  if ((step.flags & kOurs) != 0) {
    must("move_mount", target, raw(SYS_move_mount, mount, "", root_, target, MOVE_MOUNT_F_EMPTY_PATH));
    return;
  }
  const int point = must("open mount point", target, openBeneath(root_, target, O_PATH));
  must("move_mount", target,
       raw(SYS_move_mount, mount, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  closeFd(point);
}

bool TreeBuilder::isDirectory(int fd, const char* object) {
  struct stat status;
  must("fstat", object, raw(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH));
  return S_ISDIR(status.st_mode);
}

void TreeBuilder::makeDirectory(const FlatStep& step) {
  if ((step.flags & kOurs) == 0) return makeMountPointBeneath(step.target, true, step.mode);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const long made = raw(SYS_mkdirat, root_, step.target, step.mode);
    if (made == 0 || made == -EEXIST) return;
    if (made != -ENOENT || attempt == 1) fail("mkdir", step.target, made);
    makeParents(step.target);
  }
}

void TreeBuilder::makeOptionalSymlink(const FlatStep& step) {
  char path[4096];
  copyText(path, sizeof(path), step.target);
  int parent = root_;
  char* name = path;
  for (char* at = path; *at != 0; ++at) {
    if (*at != '/') continue;
    *at = 0;
    raw(SYS_mkdirat, parent, name, 0755);
    const long next = raw(SYS_openat, parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (parent != root_) closeFd(parent);
    if (next < 0) return;
    parent = static_cast<int>(next);
    name = at + 1;
  }
  raw(SYS_symlinkat, step.source, parent, name);
  if (parent != root_) closeFd(parent);
}

void TreeBuilder::makeSymlink(const FlatStep& step) {
  if ((step.flags & kOptional) != 0) return makeOptionalSymlink(step);
  if ((step.flags & kOurs) == 0) {
    const char* name = nullptr;
    const int parent = openParent(step, &name);
    must("symlink", step.target, raw(SYS_symlinkat, step.source, parent, name));
    if (parent != root_) closeFd(parent);
    return;
  }
  must("symlink", step.target, raw(SYS_symlinkat, step.source, root_, step.target));
}

int TreeBuilder::openParent(const FlatStep& step, const char** name) {
  char path[4096];
  copyText(path, sizeof(path), step.target);
  *name = step.target;
  char* slash = nullptr;
  for (char* at = path; *at != 0; ++at) {
    if (*at == '/') slash = at;
  }
  if (slash == nullptr) return root_;
  *slash = 0;
  *name = step.target + (slash - path) + 1;
  makeMountPointBeneath(path, true);
  return must("open", step.target, openBeneath(root_, path, O_PATH | O_DIRECTORY));
}

void TreeBuilder::makeFile(const FlatStep& step) {
  const char* name = step.target;
  const int parent = (step.flags & kOurs) != 0 ? root_ : openParent(step, &name);
  const int fd = must("create", step.target,
                      raw(SYS_openat, parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step.mode));
  if (parent != root_) closeFd(parent);
  const long written = raw(SYS_write, fd, step.source, step.length);
  if (written != static_cast<long>(step.length)) fail("write", step.target, written < 0 ? written : -ENOSPC);
  closeFd(fd);
}

bool TreeBuilder::isMissing(const FlatStep& step) const {
  if (isCopy(step) || same(step.source + 1, step.target)) return false;
  const long target = openBeneath(root_, step.target, O_PATH);
  if (target < 0) return target == -ENOENT || target == -ENOTDIR || target == -ELOOP;
  closeFd(static_cast<int>(target));
  return false;
}

int TreeBuilder::openSource(const FlatStep& step) {
  if (step.mount_fd >= 0) return step.mount_fd;
  if ((step.flags & kInside) != 0) {
    if ((step.flags & kOptional) != 0 && isMissing(step)) return -1;
    const long fd = openBeneath(root_, step.source + 1, O_PATH);
    if ((fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) && (step.flags & kOptional) != 0) return -1;
    must("open", step.source, fd);
    const int tree = cloneTree(static_cast<int>(fd), "", step.source);
    closeFd(static_cast<int>(fd));
    return tree;
  }
  if ((step.flags & kCanonical) != 0) {
    // The source was resolved when the plan was made: a link in it now is an attack.
    sys::OpenHow how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = block_.guard_links ? sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks : 0;
    long fd = raw(SYS_openat2, AT_FDCWD, step.source, &how, sizeof(how));
    if (fd == -ENOSYS || fd == -EPERM) {
      const int root = must("open", "/", raw(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0));
      fd = openBeneath(root, step.source + 1, O_PATH);
      closeFd(root);
    }
    must("open", step.source, fd);
    requireSame(block_, Stage::mounts, step.source, static_cast<int>(fd), step.expected);
    const int tree = cloneTree(static_cast<int>(fd), "", step.source);
    closeFd(static_cast<int>(fd));
    return tree;
  }
  const unsigned flags = kOpenTreeClone | kOpenTreeCloexec | kAtRecursive;
  const long tree = raw(SYS_open_tree, AT_FDCWD, step.source, flags);
  if ((step.flags & kOptional) != 0 && (tree == -ENOENT || tree == -EACCES || tree == -ENOTDIR)) return -1;
  return must("open_tree", step.source, tree);
}

void TreeBuilder::bind(const FlatStep& step) {
  const int tree = openSource(step);
  if (tree < 0) return;
  if (*step.target == 0) {  // a view of the host's root as our own
    setAttributes(tree, "/", attributesOf(step));
    must("move_mount", "/", raw(SYS_move_mount, tree, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
    root_ = tree;
    return;
  }
  // A part of the new root may be executable where the rest is not. A part of a host tree (kCanonical) cannot: the
  // kernel refuses to clear a flag that the host's mount has.
  const bool from_noexec = (step.flags & kInside) != 0 && (step.flags & (kExecutable | kCanonical)) == kExecutable;
  const bool copy = isCopy(step);
  if (copy && (step.flags & kExecutable) != 0) {  // one named path; the host's own mount may be noexec
    Attributes executable{0, MOUNT_ATTR_NOEXEC, 0, 0};
    raw(SYS_mount_setattr, tree, "", kAtEmptyPath, &executable, sizeof(executable));
  } else if (copy) {
    setAttributes(tree, step.source, MOUNT_ATTR_NOEXEC);
  } else if ((step.flags & kDevices) == 0) {
    setAttributes(tree, step.source, attributesOf(step), from_noexec ? MOUNT_ATTR_NOEXEC : 0);
  }
  if ((step.flags & kInside) == 0 || copy) {
    const bool known = (step.flags & (kDirectory | kFile)) != 0;
    makeMountPoint(step, known ? (step.flags & kDirectory) != 0 : isDirectory(tree, step.source));
  }
  attach(tree, step);
  closeFd(tree);
}

void TreeBuilder::directoryOnDisk(const FlatStep& step) {
  FlatStep source = step;
  source.flags = kCanonical;
  const int tree = openSource(source);
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if ((step.flags & kExecutable) == 0) attributes |= MOUNT_ATTR_NOEXEC;
  setAttributes(tree, step.target, attributes);
  if ((step.flags & kRootChanges) != 0) {
    attachRootChanges(tree);
  } else {
    makeMountPoint(step, true);
    attach(tree, step);
  }
  closeFd(tree);
}

void TreeBuilder::tmpfs(const FlatStep& step) {
  const std::uint32_t index = tmpfs_steps_++;
  if ((step.flags & kOnDisk) != 0) return directoryOnDisk(step);
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if ((step.flags & kExecutable) == 0) attributes |= MOUNT_ATTR_NOEXEC;
  const int mount = newTmpfs(step.size_text, step.inode_text, step.mode, step.target, attributes);
  if (*step.target == 0) {
    must("move_mount", "/", raw(SYS_move_mount, mount, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
    root_ = mount;
    scratch_ = mount;
    if ((step.flags & kLayeredRoot) != 0) prepareLayeredRoot(mount);
    return;
  }
  if ((step.flags & kRootChanges) != 0) {
    attachRootChanges(mount);
    if (sized_count_ < kMaxSized && index < 32) {
      built_.sized[sized_count_++] = mount;
      built_.sized_mask |= 1U << index;
    } else {
      closeFd(mount);
    }
    return;
  }
  if ((step.flags & kOptional) != 0) {
    const long there = openBeneath(root_, step.target, O_PATH | O_DIRECTORY);
    if (there < 0) return closeFd(mount);
    closeFd(static_cast<int>(there));
  }
  makeMountPoint(step, true);
  attach(mount, step);
  if (scratch_ < 0) scratch_ = mount;
  if (sized_count_ < kMaxSized && index < 32 && (step.flags & kOptional) == 0) {
    built_.sized[sized_count_++] = mount;
    built_.sized_mask |= 1U << index;
  } else if (scratch_ != mount) {
    closeFd(mount);
  }
}

void TreeBuilder::devpts(const FlatStep& step) {
  const char* options[] = {"newinstance", nullptr, "ptmxmode", "0666", "mode", "0620", "max", step.size_text, nullptr};
  if (step.size_text == nullptr) options[6] = nullptr;
  const int mount = newFilesystem("devpts", options, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  makeMountPoint(step, true);
  attach(mount, step);
  closeFd(mount);
}

void TreeBuilder::setKernelQuota(const FlatStep& step) {
  if (quotas_ < 0) {
    const int settings = openSettings();
    quotas_ = settings < 0 ? settings
                           : static_cast<int>(raw(SYS_openat, settings, "user", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  }
  const long file = quotas_ < 0 ? quotas_ : raw(SYS_openat, quotas_, step.source, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (file == -ENOENT) return;  // a kernel built without such objects
  long written = file;
  if (file >= 0) {
    written = raw(SYS_write, file, step.size_text, length(step.size_text));
    closeFd(static_cast<int>(file));
  }
  if (written < 0 && built_.quota_error == 0) built_.quota_error = static_cast<int>(-written);
}

void TreeBuilder::apply(const FlatStep& step) {
  switch (step.kind) {
    case StepKind::make_directory: return makeDirectory(step);
    case StepKind::make_symlink: return makeSymlink(step);
    case StepKind::make_file: return makeFile(step);
    case StepKind::bind: return bind(step);
    case StepKind::tmpfs: return tmpfs(step);
    case StepKind::proc: return proc(step);
    case StepKind::devpts: return devpts(step);
    case StepKind::overlay: return overlay(step);
    case StepKind::mask: return mask(step);
    case StepKind::cover_file: return coverFile(step);
    case StepKind::kernel_quota: return setKernelQuota(step);
    case StepKind::root_layer: return rootLayer(step);
    case StepKind::mount_root: return mountRoot(step);
    case StepKind::move_root: return moveRoot(step);
    case StepKind::read_only_root: {
      Attributes attributes{MOUNT_ATTR_RDONLY, 0, 0, 0};
      must("mount_setattr", "/", raw(SYS_mount_setattr, root_, "", kAtEmptyPath, &attributes, sizeof(attributes)));
      return;
    }
  }
}

void TreeBuilder::enterRoot() {
  must("fchdir", "/", raw(SYS_fchdir, root_));
  // The old root ends up stacked on the new one: lookups start below it, and no payload runs until it is detached.
  must("pivot_root", "/", raw(SYS_pivot_root, ".", "."));
  if (store_ >= 0) leaveStore();
  helper_.detachOldRoot();
  must("chdir", "/", raw(SYS_chdir, "/"));
}

BuiltTree TreeBuilder::build() {
  for (std::uint32_t i = 0; i < block_.step_count; ++i) {
    if (block_.steps[i].kind == StepKind::read_only_root) removeMaskSources();
    apply(block_.steps[i]);
  }
  removeMaskSources();
  closeFd(quotas_);
  if (helper_.needsSettings()) helper_.useSettings(openSettings());
  if (!block_.own_network) closeFd(settings_);
  if (block_.own_root) enterRoot();
  return built_;
}

void TreeBuilder::openSources(Block& block) {
  auto* steps = const_cast<FlatStep*>(block.steps);  // in the child's own copy of the mapping
  for (std::uint32_t i = 0; i < block.step_count; ++i) {
    FlatStep& step = steps[i];
    const bool directory = step.kind == StepKind::tmpfs && (step.flags & kOnDisk) != 0;
    const bool overlay = step.kind == StepKind::overlay;
    const bool layer = step.kind == StepKind::root_layer;
    if (step.mount_fd >= 0 || (step.flags & kInside) != 0) continue;
    if (step.kind != StepKind::bind && !directory && !overlay && !layer) continue;
    FlatStep source = step;
    if (directory || overlay) source.flags = kCanonical;
    step.mount_fd = openSource(source);
    if (!overlay || (step.flags & kOnDisk) == 0 || block.store_mount >= 0) continue;
    FlatStep store{};
    store.source = block.store_path;
    store.flags = kCanonical;
    store.mount_fd = -1;
    block.store_mount = openSource(store);
  }
}

void openSources(Block& block, Helper& helper) { TreeBuilder(block, helper).openSources(block); }

BuiltTree buildTree(const Block& block, Helper& helper) { return TreeBuilder(block, helper).build(); }

}  // namespace caisson::isolation
