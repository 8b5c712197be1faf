#include "session/commit/kept_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <vector>

#include "session/commit/host_attributes.h"
#include "session/commit/staging.h"
#include "sys/fd.h"

namespace caisson::session {
namespace {

using sys::Fd;

constexpr int kMaxLevels = 200;

Error copyError(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

Result<std::vector<std::string>> namesIn(int directory, const std::string& path) {
  Fd opened(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const stream = opened ? ::fdopendir(opened.get()) : nullptr;
  if (stream == nullptr) return fail(copyError("open", path, errno));
  (void)opened.release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(stream);
  return names;
}

Result<void> setTimes(int object, const struct stat& status, const std::string& path) {
  const timespec times[2] = {status.st_atim, status.st_mtim};
  if (::futimens(object, times) != 0) return fail(copyError("utimensat", path, errno));
  return {};
}

/// Root's copies keep the owner; others own what they can copy. Before chmod, since it clears setuid.
void setOwner(int object, const struct stat& status) {
  if (::geteuid() == 0) (void)!::fchownat(object, "", status.st_uid, status.st_gid, AT_EMPTY_PATH);
}

Result<void> copyFile(int from, const std::string& name, int to, const std::string& as, const std::string& path) {
  const Fd source(::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!source || ::fstat(source.get(), &status) != 0) return fail(copyError("open", path, errno));
  if (!S_ISREG(status.st_mode)) return fail(copyError("open", path, EINVAL));
  const auto attributes = readAttributes(from, name, path);
  if (!attributes) return fail(attributes.error());
  const Fd file(::openat(to, as.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(copyError("create", path, errno));
  const auto copied = readOnce(source.get(), static_cast<std::uint64_t>(status.st_size), file.get(), path);
  if (!copied) return fail(copied.error());
  setOwner(file.get(), status);
  if (auto set = setAttributes(file.get(), *attributes, path); !set) return set;
  if (::fchmod(file.get(), status.st_mode & 07777U) != 0) return fail(copyError("chmod", path, errno));
  return setTimes(file.get(), status, path);
}

Result<void> copyLevel(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                       int level) {
  struct stat status;
  if (::fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return fail(copyError("stat", path, errno));
  if (S_ISREG(status.st_mode)) return copyFile(from, name, to, as, path);
  if (S_ISLNK(status.st_mode)) {
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(from, name.c_str(), target, sizeof(target));
    if (length < 0 || length == PATH_MAX) return fail(copyError("readlink", path, length < 0 ? errno : ENAMETOOLONG));
    if (::symlinkat(std::string(target, static_cast<std::size_t>(length)).c_str(), to, as.c_str()) != 0) {
      return fail(copyError("symlink", path, errno));
    }
    const timespec times[2] = {status.st_atim, status.st_mtim};
    (void)!::utimensat(to, as.c_str(), times, AT_SYMLINK_NOFOLLOW);
    if (::geteuid() == 0) (void)!::fchownat(to, as.c_str(), status.st_uid, status.st_gid, AT_SYMLINK_NOFOLLOW);
    return {};
  }
  if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
    if (::mknodat(to, as.c_str(), status.st_mode, 0) != 0) return fail(copyError("mknod", path, errno));
    return {};
  }
  if (!S_ISDIR(status.st_mode)) return fail(copyError("copy", path, ENODEV));
  if (level >= kMaxLevels) return fail(copyError("copy", path, ENAMETOOLONG));
  const Fd source(::openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!source) return fail(copyError("open", path, errno));
  const auto attributes = readAttributes(from, name, path);
  if (!attributes) return fail(attributes.error());
  if (::mkdirat(to, as.c_str(), 0700) != 0) return fail(copyError("mkdir", path, errno));
  const Fd made(::openat(to, as.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made) return fail(copyError("open", path, errno));
  const auto names = namesIn(source.get(), path);
  if (!names) return fail(names.error());
  for (const std::string& below : *names) {
    if (auto copied = copyLevel(source.get(), below, made.get(), below, path + "/" + below, level + 1); !copied) {
      return copied;
    }
  }
  setOwner(made.get(), status);
  // After the names in it, which would get its default list.
  if (auto set = setAttributes(made.get(), *attributes, path); !set) return set;
  if (::fchmod(made.get(), status.st_mode & 07777U) != 0) return fail(copyError("chmod", path, errno));
  return setTimes(made.get(), status, path);
}

}  // namespace

Result<void> copyForKeeping(int from, const std::string& name, int to, const std::string& as, const std::string& path) {
  return copyLevel(from, name, to, as, path, 0);
}

}  // namespace caisson::session
