// The sandbox's tree, built with the descriptor-based mount calls.
//
// Nothing below the new root is named by a string that a link could redirect (runc CVE-2021-30465,
// CVE-2025-31133): sources that a person named were resolved by us and are opened again without following
// any link, targets are opened below the new root without following any link, and mounts go from descriptor
// to descriptor. The new root is stacked on "/" of our own mount namespace: lookups of absolute paths still
// start below it, so every host path stays reachable by its own name until pivot_root.
#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/child.h"
#include "isolation/helper.h"
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

bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

bool contains(const char* const* names, const char* name) {
  for (; *names != nullptr; ++names) {
    if (same(*names, name)) return true;
  }
  return false;
}

struct DirectoryEntry {  // struct linux_dirent64
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

class TreeBuilder {
 public:
  TreeBuilder(const Block& block, Helper& helper) : block_(block), helper_(helper) {}

  BuiltTree build();

 private:
  [[noreturn]] void fail(const char* call, const char* object, long error) {
    reportAndExit(block_, Stage::mounts, call, object, error < 0 ? -error : error);
  }
  int must(const char* call, const char* object, long result) {
    if (result < 0) fail(call, object, result);
    return static_cast<int>(result);
  }

  void apply(const FlatStep& step);
  void makeDirectory(const FlatStep& step);
  void makeSymlink(const FlatStep& step);
  void makeFile(const FlatStep& step);
  void bind(const FlatStep& step);
  void tmpfs(const FlatStep& step);
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
  void makeMountPoint(const char* target, bool directory);
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
  BuiltTree built_;
  std::uint32_t tmpfs_steps_ = 0, sized_count_ = 0;
};

std::uint64_t attributesOf(const FlatStep& step) {
  std::uint64_t set = MOUNT_ATTR_NOSUID;
  if ((step.flags & kWritable) == 0) set |= MOUNT_ATTR_RDONLY;
  if ((step.flags & kExecutable) == 0) set |= MOUNT_ATTR_NOEXEC;
  if ((step.flags & kDevices) == 0) set |= MOUNT_ATTR_NODEV;
  return set;
}

int TreeBuilder::newFilesystem(const char* type, const char* const* options, const char* object,
                               std::uint64_t attributes) {
  const int context = must("fsopen", type, raw(SYS_fsopen, type, FSOPEN_CLOEXEC));
  for (; options[0] != nullptr; options += 2) {
    const unsigned command = options[1] == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    must("fsconfig", options[0], raw(SYS_fsconfig, context, command, options[0], options[1], 0));
  }
  must("fsconfig create", object, raw(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
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

void TreeBuilder::setAttributes(int mount, const char* object, std::uint64_t set) {
  // Private as well: what the host mounts later must not appear in here.
  Attributes attributes{set, 0, kPrivate, 0};
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

void TreeBuilder::makeMountPoint(const char* target, bool directory) {
  if (*target == 0) return;
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
  for (int attempt = 0; attempt < 2; ++attempt) {
    const long made = raw(SYS_mkdirat, root_, step.target, step.mode);
    if (made == 0 || made == -EEXIST) return;
    if (made != -ENOENT || attempt == 1) fail("mkdir", step.target, made);
    makeParents(step.target);
  }
}

void TreeBuilder::makeSymlink(const FlatStep& step) {
  must("symlink", step.target, raw(SYS_symlinkat, step.source, root_, step.target));
}

void TreeBuilder::makeFile(const FlatStep& step) {
  const int fd =
      must("create", step.target,
           raw(SYS_openat, root_, step.target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, step.mode));
  const long written = raw(SYS_write, fd, step.source, step.length);
  if (written != static_cast<long>(step.length)) fail("write", step.target, written < 0 ? written : -ENOSPC);
  closeFd(fd);
}

/// The source as a detached copy of its mount, or -1 when it is optional and absent.
int TreeBuilder::openSource(const FlatStep& step) {
  if (step.mount_fd >= 0) return step.mount_fd;
  if ((step.flags & kInside) != 0) {
    long fd = openBeneath(root_, step.target, O_PATH);
    if ((fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) && (step.flags & kOptional) != 0) return -1;
    must("open", step.source, fd);
    if (!same(step.source + 1, step.target)) {  // not over itself: something else of the new root
      closeFd(static_cast<int>(fd));
      fd = must("open", step.source, openBeneath(root_, step.source + 1, O_PATH));
    }
    const int tree = cloneTree(static_cast<int>(fd), "", step.source);
    closeFd(static_cast<int>(fd));
    return tree;
  }
  if ((step.flags & kCanonical) != 0) {
    // Resolved when the plan was made; a link in it now was put there since.
    sys::OpenHow how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = block_.guard_links ? sys::kResolveNoSymlinks | sys::kResolveNoMagiclinks : 0;
    long fd = raw(SYS_openat2, AT_FDCWD, step.source, &how, sizeof(how));
    if (fd == -ENOSYS || fd == -EPERM)
      fd = openBeneath(must("open", "/", raw(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0)), step.source + 1,
                       O_PATH);
    must("open", step.source, fd);
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
  if ((step.flags & kDevices) == 0) setAttributes(tree, step.source, attributesOf(step));
  if ((step.flags & kInside) == 0) {
    const bool known = (step.flags & (kDirectory | kFile)) != 0;
    makeMountPoint(step.target, known ? (step.flags & kDirectory) != 0 : isDirectory(tree, step.source));
  }
  attach(tree, step);
  closeFd(tree);
}

void TreeBuilder::tmpfs(const FlatStep& step) {
  const std::uint32_t index = tmpfs_steps_++;
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if ((step.flags & kExecutable) == 0) attributes |= MOUNT_ATTR_NOEXEC;
  const int mount = newTmpfs(step.size_text, step.inode_text, step.mode, step.target, attributes);
  if (*step.target == 0) {
    must("move_mount", "/", raw(SYS_move_mount, mount, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
    root_ = mount;
    scratch_ = mount;
    return;
  }
  if ((step.flags & kOptional) != 0) {
    const long there = openBeneath(root_, step.target, O_PATH | O_DIRECTORY);
    if (there < 0) return closeFd(mount);
    closeFd(static_cast<int>(there));
  }
  makeMountPoint(step.target, true);
  attach(mount, step);
  if (scratch_ < 0) scratch_ = mount;
  if (sized_count_ < kMaxSized && index < 32 && (step.flags & kOptional) == 0) {
    built_.sized[sized_count_++] = mount;
    built_.sized_mask |= 1U << index;
  } else if (scratch_ != mount) {
    closeFd(mount);
  }
}

void TreeBuilder::proc(const FlatStep& step) {
  // hidepid: pid 1 and whatever else the payload may not trace does not even show.
  const char* options[] = {"hidepid", block_.hide_processes ? "invisible" : "off", nullptr};
  const int mount =
      newFilesystem("proc", options, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  makeMountPoint(step.target, true);
  attach(mount, step);
  if ((step.flags & kMaskOthers) != 0) maskOthers(mount, step);
  closeFd(mount);
}

constexpr std::uint64_t kMaskAttributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

/// Which entries there are is the running kernel's decision, so they are listed. mount(2) by name takes one call where
/// the calls by descriptor take three, and is safe here: the names are the kernel's own, in a proc that only we have
/// seen. A copy of a mask has its attributes.
void TreeBuilder::maskOthers(int proc, const FlatStep& step) {
  prepareMasks();
  struct {
    int source;
    char first[64];
  } masks[] = {{empty_file_, {}}, {empty_directory_, {}}};
  const int list = must("open", step.target, raw(SYS_openat, proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  must("fchdir", step.target, raw(SYS_fchdir, list));
  alignas(8) char entries[2048];
  for (;;) {
    const int bytes = must("list", step.target, raw(SYS_getdents64, list, entries, sizeof(entries)));
    if (bytes == 0) break;
    for (int at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->length;
      const bool process = entry->name[0] >= '0' && entry->name[0] <= '9';
      if (process || entry->name[0] == '.' || contains(step.names, entry->name)) continue;
      if (entry->type != DT_REG && entry->type != DT_DIR) continue;  // a link leads to what is masked or shown itself
      auto& mask = masks[entry->type == DT_DIR ? 1 : 0];
      if (mask.first[0] != 0 && raw(SYS_mount, mask.first, entry->name, nullptr, MS_BIND, nullptr) == 0) continue;
      const int tree = cloneTree(mask.source, "", "mask");
      setAttributes(tree, "mask", kMaskAttributes);
      must("move_mount", entry->name, raw(SYS_move_mount, tree, "", proc, entry->name, MOVE_MOUNT_F_EMPTY_PATH));
      closeFd(tree);
      if (length(entry->name) < sizeof(mask.first)) copyText(mask.first, sizeof(mask.first), entry->name);
    }
  }
  closeFd(list);
}

void TreeBuilder::coverFile(const FlatStep& step) {
  // The kernel mounts no file that was removed already, so it has a name until it is attached.
  constexpr const char* kName = ".cover";
  const int file = must("create", step.target,
                        raw(SYS_openat, scratch_, kName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444));
  const long written = raw(SYS_write, file, step.source, step.length);
  if (written != static_cast<long>(step.length)) fail("write", step.target, written < 0 ? written : -ENOSPC);
  if (!coverByName(kName, step)) coverByDescriptor(file, step);
  must("unlink", step.target, raw(SYS_unlinkat, scratch_, kName, 0));
  closeFd(file);
}

/// In a root that only we have written to, as above.
bool TreeBuilder::coverByName(const char* name, const FlatStep& step) {
  if ((step.flags & kOurs) == 0 || scratch_ != root_ || raw(SYS_fchdir, root_) != 0) return false;
  const long bound = raw(SYS_mount, name, step.target, nullptr, MS_BIND, nullptr);
  if (bound == -ENOENT) return true;  // a kernel built without the file
  if (bound < 0) return false;
  must("mount", step.target,
       raw(SYS_mount, nullptr, step.target, nullptr,
           MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  return true;
}

void TreeBuilder::coverByDescriptor(int file, const FlatStep& step) {
  const long point = openBeneath(root_, step.target, O_PATH);
  if (point == -ENOENT) return;
  must("open", step.target, point);
  const int tree = cloneTree(file, "", step.target);
  setAttributes(tree, step.target, kMaskAttributes);
  must("move_mount", step.target,
       raw(SYS_move_mount, tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  closeFd(tree);
  closeFd(static_cast<int>(point));
}

void TreeBuilder::devpts(const FlatStep& step) {
  const char* options[] = {"newinstance", nullptr, "ptmxmode", "0666", "mode", "0620", "max", step.size_text, nullptr};
  if (step.size_text == nullptr) options[6] = nullptr;
  const int mount = newFilesystem("devpts", options, step.target, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  makeMountPoint(step.target, true);
  attach(mount, step);
  closeFd(mount);
}

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

/// A layer above the lower tree that hides some of its names and shows others with different content.
void TreeBuilder::fillMaskLayer(int store, const FlatStep& step) {
  char path[4096];
  for (const char* const* name = step.names; name != nullptr && *name != nullptr; ++name) {
    makeMaskParents(store, *name, path);
    // A character device 0:0 in a layer above means: not there. The plan's names are unique and none lies below
    // another: one that exists already would stay visible.
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

/// The store, the lower tree and the overlay are stacked on one mount point: the overlay is on top, so nothing
/// below it can be reached by the payload, and nothing needs to be unmounted.
void TreeBuilder::overlay(const FlatStep& step) {
  int lower = step.mount_fd;
  if (lower < 0) {
    FlatStep source = step;
    source.flags = kCanonical;
    lower = openSource(source);
  }
  int store;
  makeMountPoint(step.target, true);
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
  for (const char* name : {"lower", "mask", step.upper_name, step.work_name}) {
    const long made = raw(SYS_mkdirat, store, name, 0755);
    if (made != -EEXIST) must("mkdir", name, made);
  }
  setAttributes(lower, step.source, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY);
  must("move_mount", "lower", raw(SYS_move_mount, lower, "", store, "lower", MOVE_MOUNT_F_EMPTY_PATH));
  closeFd(lower);
  fillMaskLayer(store, step);
  must("fchdir", step.target, raw(SYS_fchdir, store));
  const bool read_only = (step.flags & kReadOnlyOverlay) != 0;
  const char* writable_options[] = {"lowerdir",     step.lower_names, "upperdir", step.upper_name, "workdir",
                                    step.work_name, "userxattr",      nullptr,    nullptr};
  const char* read_only_options[] = {"lowerdir", step.lower_names, "userxattr", nullptr, nullptr};
  const char* const* options = read_only ? read_only_options : writable_options;
  std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (read_only) attributes |= MOUNT_ATTR_RDONLY;
  if ((step.flags & kExecutable) == 0) attributes |= MOUNT_ATTR_NOEXEC;
  const int mount = newFilesystem("overlay", options, step.source, attributes);
  // Onto the store's own root, which is what the mount point shows now.
  must("move_mount", step.target,
       raw(SYS_move_mount, mount, "", store, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  if (!read_only) {
    built_.upper =
        must("open", "upper", raw(SYS_openat, store, step.upper_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
  }
  closeFd(mount);
  closeFd(store);
}

void TreeBuilder::prepareMasks() {
  if (empty_file_ >= 0) return;
  must("create", "mask", raw(SYS_mknodat, scratch_, ".mask-file", S_IFREG, 0));
  must("create", "mask", raw(SYS_mkdirat, scratch_, ".mask-directory", 0));
  empty_file_ = must("open", "mask", raw(SYS_openat, scratch_, ".mask-file", O_PATH | O_CLOEXEC, 0));
  empty_directory_ = must("open", "mask", raw(SYS_openat, scratch_, ".mask-directory", O_PATH | O_CLOEXEC, 0));
}

/// The masks hold on to them; their names are not for the payload.
void TreeBuilder::removeMaskSources() {
  if (empty_file_ < 0) return;
  raw(SYS_unlinkat, scratch_, ".mask-file", 0);
  raw(SYS_unlinkat, scratch_, ".mask-directory", AT_REMOVEDIR);
  empty_file_ = -1;
}

void TreeBuilder::mask(const FlatStep& step) {
  long point = openBeneath(root_, step.target, O_PATH);
  if (point == -ELOOP && (step.flags & kRefuseLinks) == 0) return;  // a link to hide leads to what is hidden or outside
  if (point == -ENOENT || point == -ENOTDIR) {
    if ((step.flags & kAbsentRefuse) != 0) fail("deny", step.target, -ENOENT);
    if ((step.flags & kAbsentCreate) == 0) return;
    makeMountPoint(step.target, true);
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

/// The kernel counts an object in every user namespace up to the first: what is bounded in this one is bounded in the
/// caller's account, too. Where /proc/sys is read-only, as in containers, the result says so.
void TreeBuilder::setKernelQuota(const FlatStep& step) {
  char path[96] = "/proc/sys/user/";
  copyText(path + length(path), sizeof(path) - length(path), step.source);
  const long file = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
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
    case StepKind::read_only_root: {
      Attributes attributes{MOUNT_ATTR_RDONLY, 0, 0, 0};
      must("mount_setattr", "/", raw(SYS_mount_setattr, root_, "", kAtEmptyPath, &attributes, sizeof(attributes)));
      return;
    }
  }
}

void TreeBuilder::enterRoot() {
  must("fchdir", "/", raw(SYS_fchdir, root_));
  // The old root ends up stacked on the new one: lookups here start below it, and nothing else runs until it is gone.
  must("pivot_root", "/", raw(SYS_pivot_root, ".", "."));
  helper_.detachOldRoot();
  must("chdir", "/", raw(SYS_chdir, "/"));
}

BuiltTree TreeBuilder::build() {
  for (std::uint32_t i = 0; i < block_.step_count; ++i) {
    if (block_.steps[i].kind == StepKind::read_only_root) removeMaskSources();
    apply(block_.steps[i]);
  }
  removeMaskSources();
  if (block_.own_root) enterRoot();
  return built_;
}

}  // namespace

BuiltTree buildTree(const Block& block, Helper& helper) { return TreeBuilder(block, helper).build(); }

}  // namespace caisson::isolation
