// The sandbox's proc: entries outside a list are masked, files with the sandbox's values cover others.
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <sys/vfs.h>

#include <cerrno>

#include "isolation/tree_builder.h"

namespace caisson::isolation {
namespace {

bool contains(const char* const* names, const char* name) {
  for (; *names != nullptr; ++names) {
    if (same(*names, name)) return true;
  }
  return false;
}

constexpr std::uint64_t kProcAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

struct DirectoryEntry {  // struct linux_dirent64
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

}  // namespace

long TreeBuilder::freshProc(const FlatStep& step, bool subset) {
  // hidepid: pid 1 and whatever else the payload may not trace does not even show.
  const char* options[] = {"hidepid", block_.hide_processes ? "invisible" : "off", subset ? "subset" : nullptr, "pid",
                           nullptr};
  const int context = newContext("proc", options, step.target);
  const long mount = raw(SYS_fsmount, context, FSMOUNT_CLOEXEC, kProcAttributes);
  closeFd(context);
  return mount;
}

int TreeBuilder::boundProc() {
  const int tree = cloneTree(AT_FDCWD, "/proc", "/proc");
  struct statfs status;
  must("fstatfs", "/proc", raw(SYS_fstatfs, tree, &status));
  if (status.f_type != PROC_SUPER_MAGIC) fail("fstatfs", "/proc", ENODEV);  // something else covers the caller's
  setAttributes(tree, "/proc", kProcAttributes);                            // read-only later: protectBoundProc()
  return tree;
}

int TreeBuilder::openProc(const FlatStep& step) {
  long mount = freshProc(step, false);
  if (mount == -EPERM && (step.flags & kMayBeSubset) != 0) {
    mount = freshProc(step, true);
    if (mount >= 0) built_.proc = ProcRung::subset;
  }
  if (mount == -EPERM && (step.flags & kMayBeBound) != 0) {
    mount = boundProc();
    built_.proc = ProcRung::bound;
    built_.protect_proc = (step.flags & kWritable) == 0;
  }
  return must("fsmount", step.target, mount, mount == -EPERM ? ErrorCode::masked_proc : ErrorCode::other);
}

int TreeBuilder::openSettings() {
  if (settings_ < 0) settings_ = openHostSettings();
  return settings_;
}

void TreeBuilder::proc(const FlatStep& step) {
  const int mount = openProc(step);
  if (settings_ < 0 && built_.proc == ProcRung::fresh) {
    settings_ = static_cast<int>(raw(SYS_openat, mount, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
    if (settings_ >= 0 && helper_.needsSettings()) helper_.useSettings(settings_);
  }
  makeMountPoint(step, true);
  attach(mount, step);
  if ((step.flags & kMaskOthers) != 0) maskOthers(mount, step);
  closeFd(mount);
}

/// Lists the entries, since they depend on the kernel. mount(2) by name takes one call where the calls by descriptor
/// take three. It is safe here: the names are the kernel's own, in a proc that no payload has seen. A copy of a mask
/// keeps its attributes.
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
  // A link is skipped: what it leads to has its own path, which Landlock or another step handles.
  if (point == -ENOENT || point == -ELOOP) return;
  must("open", step.target, point);
  const int tree = cloneTree(file, "", step.target);
  setAttributes(tree, step.target, kMaskAttributes);
  must("move_mount", step.target,
       raw(SYS_move_mount, tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
  closeFd(tree);
  closeFd(static_cast<int>(point));
}

}  // namespace caisson::isolation
