#include "session/client/command_rights.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <vector>

#include "base/text.h"
#include "plan/filesystem.h"
#include "policy/decode/syntax.h"
#include "sys/privileges.h"
#include "sys/raw_syscall.h"
#include "sys/root_dir_resolve.h"

namespace caisson::session {
namespace {

using sys::FileType;
using sys::raw;
using sys::RootDir;

constexpr std::string_view kFileAccess = "file access";  // in errors
constexpr int kMaxFollowedLinks = 40;                    // as the kernel's
/// File systems whose files are interfaces of the kernel.
constexpr unsigned long kKernelInterfaces[] = {
    PROC_SUPER_MAGIC, SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
    DEBUGFS_MAGIC,    TRACEFS_MAGIC,  SECURITYFS_MAGIC,   SELINUX_MAGIC,       BPF_FS_MAGIC,
    EFIVARFS_MAGIC,   PSTOREFS_MAGIC, BINFMTFS_MAGIC,     NSFS_MAGIC,          0x62656570 /* configfs */,
    0x19800202 /* mqueue */};

Error rightsError(std::string_view call, long result) {
  return sysError(Stage::identity, call, kFileAccess, static_cast<int>(-result));
}

/// Of the calling thread only: raw system calls, since the C library changes all threads of the process.
Result<void> takeRights(int rules, uid_t id) {
  if (id != 0) {
    if (const long set = raw(SYS_setgroups, 0, nullptr); set < 0) return fail(rightsError("setgroups", set));
    if (const long set = raw(SYS_setresgid, id, id, id); set < 0) return fail(rightsError("setresgid", set));
    if (const long set = raw(SYS_setresuid, id, id, id); set < 0) return fail(rightsError("setresuid", set));
  }
  if (auto dropped = sys::dropCapabilities({.ambient = false, .object = kFileAccess}); !dropped) return dropped;
  if (auto forbidden = sys::forbidNewPrivileges(kFileAccess); !forbidden) return forbidden;
  if (rules < 0) return {};
  const long entered = raw(SYS_landlock_restrict_self, rules, 0);
  return entered < 0 ? fail(rightsError("landlock_restrict_self", entered)) : Result<void>();
}

std::string parentOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash));
}

/// Without the `..` that lead above the root, where the kernel stays at the root.
std::string keptBelowRoot(std::string_view path) {
  std::string kept;
  std::size_t depth = 0;
  for (const std::string_view part : split(path, '/')) {
    if (part == ".") continue;
    if (part == ".." && depth == 0) continue;
    depth = part == ".." ? depth - 1 : depth + 1;
    kept.append("/").append(part);
  }
  return kept.empty() ? "/" : kept;
}

}  // namespace

Result<void> runWithCommandRights(const sys::Fd& rules, uid_t payload_id, const std::function<Result<void>()>& work) {
  Result<void> result;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: no handler of the program may run with these rights
  std::thread thread;
  int problem = 0;
  try {
    thread = std::thread([&] {
      auto taken = takeRights(rules.get(), payload_id);
      result = taken ? work() : taken;
    });
  } catch (const std::system_error& error) {
    problem = error.code().value();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (problem != 0) return fail(sysError(Stage::state, "pthread_create", kFileAccess, problem));
  thread.join();
  return result;
}

Result<std::string> pathInside(std::string_view path, const std::string& workspace) {
  const auto climbs = [&](std::string_view directory) {
    const auto parts = sys::splitPath(path, directory);
    return !parts && parts.error() == sys::BadRequest::climbs;
  };
  const bool relative = !path.starts_with('/');
  std::string_view directory;
  if (relative || policy::isWithin(path, workspace)) {
    directory = workspace;
  } else if (policy::isWithin(path, plan::kWorkspace)) {
    directory = plan::kWorkspace;
  }
  if (!directory.empty() && climbs(directory)) {
    return fail(withCode(plainError(Stage::state, "open", path, "climbs out of " + std::string(directory),
                                    "name a path outside of the workspace by its absolute path"),
                         ErrorCode::path_escapes));
  }
  if (path.empty()) return fail(sysError(Stage::state, "open", path, EINVAL, "name a file or directory"));
  return keptBelowRoot(relative ? workspace + "/" + std::string(path) : std::string(path));
}

Result<std::string> followLinks(const RootDir& root, std::string path) {
  for (int links = 0; links <= kMaxFollowedLinks; ++links) {
    const auto info = root.stat(path);
    if (!info || info->type != FileType::link) return path;
    const auto target = root.readLink(path);
    if (!target) return fail(target.error());
    path = keptBelowRoot(target->starts_with('/') ? *target : parentOf(path) + "/" + *target);
  }
  return fail(sysError(Stage::state, "open", path, ELOOP));
}

Result<NearestObject> openNearest(const RootDir& root, const std::string& path) {
  auto handle = root.openFile(path, {.flags = O_PATH, .types = kAnyType});
  if (handle) return NearestObject{std::move(*handle), path};
  Error error = handle.error();
  for (std::string at = path; error.sys_errno == ENOENT && at != "/";) {
    at = parentOf(at);
    auto directory = root.enter(at);
    if (directory) return NearestObject{sys::Fd(::fcntl(directory->descriptor(), F_DUPFD_CLOEXEC, 3)), at};
    error = directory.error();
  }
  return fail(error);
}

Result<void> checkFileSystem(const RootDir& root, const std::string& path) {
  const auto nearest = openNearest(root, path);
  if (!nearest) return {};  // the operation itself reports it
  struct statfs status{};
  if (::fstatfs(nearest->handle.get(), &status) != 0) return fail(sysError(Stage::state, "fstatfs", path, errno));
  const auto magic = static_cast<unsigned long>(static_cast<std::uint32_t>(status.f_type));
  if (std::ranges::find(kKernelInterfaces, magic) == std::end(kKernelInterfaces)) return {};
  return fail(plainError(Stage::state, "open", path, "it is an interface of the kernel, not a file",
                         "use a command in the sandbox, such as cat"));
}

bool isMountPoint(const RootDir& root, const std::string& path) {
  const auto object = root.openFile(path, {.flags = O_PATH, .types = kAnyType});
  const auto parent = root.enter(parentOf(path));
  if (!object || !parent) return false;
  const auto own = sys::inspect(object->get(), "");
  const auto above = sys::inspect(parent->descriptor(), "");
  return own && above && !sys::sameMount(*own, *above);
}

Error explainAccess(Error error) {
  switch (error.sys_errno) {
    case EROFS:
      error.hint = "the sandbox shows it read-only; write below the workspace, /tmp or the home directory";
      break;
    case EACCES:
    case EPERM:
      error.hint =
          "a command in the sandbox may not do this either: the policy hides the path, or the file belongs to another "
          "user";
      break;
    case ENOENT: error.hint = "the sandbox shows no such path; list its directory to see what there is"; break;
    default: break;
  }
  return error;
}

}  // namespace caisson::session
