#include "supervise/disk/owned_mounts.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "isolation/child.h"
#include "supervise/clone_error.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using sys::Fd;

constexpr unsigned kAtRecursive = 0x8000;
constexpr unsigned kAtEmptyPath = 0x1000;

Result<void> writeIds(pid_t pid, const char* file, unsigned on_disk, unsigned shown) {
  char path[64];
  char text[64];
  std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
  const int length = std::snprintf(text, sizeof(text), "%u %u 1", on_disk, shown);
  const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text, static_cast<std::size_t>(length)) != length) {
    return fail(sysError(Stage::launch, "write", path, errno));
  }
  return {};
}

/// Creates a user namespace that maps the on-disk `uid` to the sandbox's. Only its descriptor is needed; the process
/// that created it exits at once.
Result<Fd> mappingNamespace(uid_t uid, gid_t gid, const plan::Identity& identity) {
  const long parent = sys::raw(SYS_getpid);
  const long pid = sys::raw(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (pid < 0) return fail(cloneError("clone", "id-mapping namespace", -pid, true));
  if (pid == 0) {
    sys::raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (sys::raw(SYS_getppid) != parent)
      sys::raw(SYS_exit_group, 0);  // the parent died before the death signal was set
    for (;;) sys::raw(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
  }
  const auto child = static_cast<pid_t>(pid);
  Result<void> written = writeIds(child, "uid_map", uid, identity.outside_uid);
  if (written) written = writeIds(child, "gid_map", gid, identity.outside_gid);
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/ns/user", child);
  Fd names(::open(path, O_RDONLY | O_CLOEXEC));
  const int error = errno;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!written) return fail(written.error());
  if (!names) return fail(sysError(Stage::launch, "open", path, error));
  return names;
}

}  // namespace

Result<Fd> detachedMount(const char* path, const isolation::ExpectedFile& expected) {
  const Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const long opened = isolation::openBeneath(root.get(), path + 1, O_PATH);
  if (opened < 0) return fail(sysError(Stage::mounts, "open", path, static_cast<int>(-opened)));
  const Fd found(static_cast<int>(opened));
  struct stat status{};
  if (expected.inode != 0 &&
      (::fstat(found.get(), &status) != 0 || status.st_dev != expected.device || status.st_ino != expected.inode)) {
    return fail(withCode(sysError(Stage::mounts, "open", path, ESTALE), ErrorCode::directory_replaced));
  }
  const long cloned = sys::raw(SYS_open_tree, found.get(), "", 1U | O_CLOEXEC | kAtRecursive | kAtEmptyPath);
  if (cloned < 0) return fail(sysError(Stage::mounts, "open_tree", path, static_cast<int>(-cloned)));
  return Fd(static_cast<int>(cloned));
}

Result<Fd> ownedMount(const char* source, const plan::Identity& identity, std::vector<std::string>* unmapped,
                      const isolation::ExpectedFile& expected) {
  auto tree = detachedMount(source, expected);
  if (!tree) return fail(tree.error());
  struct stat status;
  if (::fstat(tree->get(), &status) != 0) return fail(sysError(Stage::mounts, "fstat", source, errno));
  auto names = mappingNamespace(status.st_uid, status.st_gid, identity);
  if (!names) return fail(names.error());
  struct {
    std::uint64_t set, clear, propagation, userns;
  } attributes{MOUNT_ATTR_IDMAP, 0, 0, static_cast<std::uint64_t>(names->get())};
  const long mapped =
      sys::raw(SYS_mount_setattr, tree->get(), "", kAtEmptyPath | kAtRecursive, &attributes, sizeof(attributes));
  if (mapped == -EINVAL && unmapped != nullptr) {
    unmapped->emplace_back(source);
    return tree;
  }
  if (mapped < 0) {
    const bool lacking = mapped == -EINVAL;
    return fail(sysError(Stage::mounts, "mount_setattr", source, static_cast<int>(-mapped),
                         lacking ? "its file system has no idmapped mounts on this kernel; run caisson as an ordinary "
                                   "user instead of root"
                                 : ""));
  }
  return tree;
}

Result<void> prepareOwnedMounts(const plan::Plan& plan, isolation::Block& block, std::vector<Fd>& owned,
                                std::vector<std::string>& unmapped) {
  auto* steps = const_cast<isolation::FlatStep*>(block.steps);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* bind = std::get_if<plan::Bind>(&plan.steps[i]);
    const auto* overlay = std::get_if<plan::MountOverlay>(&plan.steps[i]);
    const auto* layer = std::get_if<plan::RootLayer>(&plan.steps[i]);
    if ((bind == nullptr || !bind->owned) && (overlay == nullptr || !overlay->owned) &&
        (layer == nullptr || !plan.identity.maps_files)) {
      continue;
    }
    auto mount = bind != nullptr || overlay != nullptr || layer->owned
                     ? ownedMount(steps[i].source, plan.identity, &unmapped, steps[i].expected)
                     : detachedMount(steps[i].source);
    if (!mount) return fail(mount.error());
    steps[i].mount_fd = mount->get();
    owned.push_back(std::move(*mount));
  }
  return {};
}

}  // namespace caisson::supervise
