#include "session/commit/kept_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <utility>
#include <vector>

#include "session/changes/sparse_read.h"
#include "session/commit/host_attributes.h"
#include "session/commit/object_moves.h"
#include "session/commit/real_tree.h"
#include "session/commit/staging.h"
#include "sys/change_mode.h"
#include "sys/fd.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

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

std::int64_t coarseNow() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

CopiedFile stateOf(const FileInfo& info) {
  // Two changes within a tick, or on some file systems within two seconds, have the same time.
  constexpr std::int64_t kFine = 20'000'000, kCoarse = 2'000'000'000;
  const std::int64_t precision = info.modified_ns % 1'000'000'000 == 0 ? kCoarse : kFine;
  return {info.changed_ns, info.modified_ns, info.size, info.modified_ns + precision < coarseNow()};
}

Result<void> copyFile(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                      CopiedFiles* files) {
  const Fd source(::openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!source || ::fstat(source.get(), &status) != 0) return fail(copyError("open", path, errno));
  if (!S_ISREG(status.st_mode)) return fail(copyError("open", path, EINVAL));
  if (files != nullptr) (*files)[path] = stateOf(fileInfoOf(status));
  const Fd file(::openat(to, as.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(copyError("create", path, errno));
  return copyOpenFile(source.get(), file.get(), path);
}

Result<void> copyPipeOrSocket(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                              const struct stat& status) {
  const auto attributes = readAttributes(from, name, path);
  if (!attributes) return fail(attributes.error());
  if (::mknodat(to, as.c_str(), (status.st_mode & S_IFMT) | 0600U, 0) != 0)
    return fail(copyError("mknod", path, errno));
  const Fd made(::openat(to, as.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat copy{};
  if (!made || ::fstat(made.get(), &copy) != 0) return fail(copyError("open", path, errno));
  if ((copy.st_mode & S_IFMT) != (status.st_mode & S_IFMT)) return fail(copyError("open", path, EINVAL));
  const mode_t mode = takeOwner(made.get(), {status.st_uid, status.st_gid}, status.st_mode & 07777U);
  if (auto set = setAttributes(made.get(), *attributes, path); !set) return set;
  // A socket cannot be opened but with O_PATH.
  if (const int error = sys::changeMode(made.get(), mode); error != 0) {
    return fail(copyError("chmod", path, error));
  }
  const std::string self = "/proc/self/fd/" + std::to_string(made.get());
  const timespec times[2] = {status.st_atim, status.st_mtim};
  if (::utimensat(AT_FDCWD, self.c_str(), times, 0) != 0) return fail(copyError("utimensat", path, errno));
  return {};
}

Result<void> copyLevel(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                       CopiedFiles* files, int level) {
  struct stat status;
  if (::fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return fail(copyError("stat", path, errno));
  if (S_ISREG(status.st_mode)) return copyFile(from, name, to, as, path, files);
  if (S_ISLNK(status.st_mode)) {
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(from, name.c_str(), target, sizeof(target));
    if (length < 0 || length == PATH_MAX) return fail(copyError("readlink", path, length < 0 ? errno : ENAMETOOLONG));
    if (::symlinkat(std::string(target, static_cast<std::size_t>(length)).c_str(), to, as.c_str()) != 0) {
      return fail(copyError("symlink", path, errno));
    }
    const timespec times[2] = {status.st_atim, status.st_mtim};
    (void)!::utimensat(to, as.c_str(), times, AT_SYMLINK_NOFOLLOW);
    const uid_t owner = ::geteuid() == 0 ? status.st_uid : static_cast<uid_t>(-1);
    (void)!::fchownat(to, as.c_str(), owner, status.st_gid, AT_SYMLINK_NOFOLLOW);
    return {};
  }
  if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
    return copyPipeOrSocket(from, name, to, as, path, status);
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
    if (auto copied = copyLevel(source.get(), below, made.get(), below, path + "/" + below, files, level + 1);
        !copied) {
      return copied;
    }
  }
  const mode_t mode = takeOwner(made.get(), {status.st_uid, status.st_gid}, status.st_mode & 07777U);
  // After the names in it, which would get its default list.
  if (auto set = setAttributes(made.get(), *attributes, path); !set) return set;
  if (::fchmod(made.get(), mode) != 0) return fail(copyError("chmod", path, errno));
  return setTimes(made.get(), status, path);
}

/// An original and its copy.
struct CopiedObject {
  int from;
  const std::string& name;
  int to;
  const std::string& as;
};

Error stillWritten(const std::string& path) {
  return sysError(Stage::state, "rename", path, EBUSY,
                  "a program writes to it all the time: stop that program and try again");
}

bool isCopied(const CopiedObject& object, const FileInfo& info, const std::string& path, const CopiedFiles& files) {
  const auto copy = infoAt(object.to, object.as);
  if (!copy || copy->type != info.type) return false;
  if (info.type != FileType::regular) return info.type != FileType::link;
  const auto known = files.find(path);
  if (known != files.end() && known->second.settled) {
    const CopiedFile& then = known->second;
    return then.changed_ns == info.changed_ns && then.modified_ns == info.modified_ns && then.size == info.size;
  }
  if (copy->size != info.size) return false;
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const Fd original(::openat(object.from, object.name.c_str(), kFlags));
  const Fd copied(::openat(object.to, object.as.c_str(), kFlags));
  return original && copied && sameContent(original.get(), copied.get(), info.size);
}

/// Removes an original that a program writes to all the time, and copies it once more. What is written from then on is
/// lost, as in a file without a name.
Result<void> removeWritten(const CopiedObject& object, const std::string& path) {
  const Fd held(::openat(object.from, object.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!held || ::fstat(held.get(), &status) != 0) return fail(copyError("open", path, errno));
  const auto info = infoAt(object.from, object.name);
  if (!info || info->inode != status.st_ino || info->type != FileType::regular) return fail(stillWritten(path));
  const auto last = sys::unpredictableName();
  if (!last) return fail(copyError("getrandom", path, errno));
  const Fd copy(::openat(object.to, last->c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy) return fail(copyError("create", path, errno));
  const auto replace_copy = [&]() -> Result<void> {
    if (::unlinkat(object.from, object.name.c_str(), 0) != 0) return fail(copyError("unlink", path, errno));
    if (auto copied = copyOpenFile(held.get(), copy.get(), path); !copied) return copied;
    const int error = renameWith(object.to, *last, object.to, object.as, 0);
    return error == 0 ? Result<void>() : fail(copyError("rename", path, error));
  };
  auto replaced = replace_copy();
  if (!replaced) (void)::unlinkat(object.to, last->c_str(), 0);  // the copy before it stays
  return replaced;
}

Result<void> removeFile(const CopiedObject& object, const std::string& path, const CopiedFiles& files) {
  constexpr int kTries = 20;
  CopiedFiles again;
  for (int tries = 0; tries < kTries; ++tries) {
    const auto info = infoAt(object.from, object.name);
    if (!info) return {};
    if (isCopied(object, *info, path, tries == 0 ? files : again)) {
      const Fd held(::openat(object.from, object.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      if (::unlinkat(object.from, object.name.c_str(), 0) != 0) return fail(copyError("unlink", path, errno));
      struct stat status;
      if (info->type != FileType::regular || !held || ::fstat(held.get(), &status) != 0) return {};
      const FileInfo after = fileInfoOf(status);
      if (after.size == info->size && after.modified_ns == info->modified_ns) return {};
      // Written to in this instant.
      const Fd copy(::openat(object.to, object.as.c_str(), O_RDWR | O_TRUNC | O_NOFOLLOW | O_CLOEXEC));
      if (!copy) return fail(copyError("open", path, errno));
      return copyOpenFile(held.get(), copy.get(), path);
    }
    if (auto removed = sys::removeTreeAt(object.to, object.as, path, Stage::state); !removed) return removed;
    again.clear();
    if (auto copied = copyForKeeping(object.from, object.name, object.to, object.as, path, &again); !copied) {
      return copied;
    }
    if (info->type == FileType::link) {
      if (::unlinkat(object.from, object.name.c_str(), 0) != 0) return fail(copyError("unlink", path, errno));
      return {};
    }
  }
  return removeWritten(object, path);
}

Result<void> removeLevel(const CopiedObject& object, const std::string& path, const CopiedFiles& files, int level) {
  const auto info = infoAt(object.from, object.name);
  if (!info) return {};
  if (info->type != FileType::directory) return removeFile(object, path, files);
  if (level >= kMaxLevels) return fail(copyError("copy", path, ENAMETOOLONG));
  if (const auto copy = infoAt(object.to, object.as); !copy || copy->type != FileType::directory) {
    if (auto removed = sys::removeTreeAt(object.to, object.as, path, Stage::state); !removed) return removed;
    if (auto copied = copyForKeeping(object.from, object.name, object.to, object.as, path); !copied) return copied;
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const Fd original(::openat(object.from, object.name.c_str(), kFlags));
  const Fd copy(::openat(object.to, object.as.c_str(), kFlags));
  struct stat kept;
  if (!original || !copy || ::fstat(copy.get(), &kept) != 0) return fail(copyError("open", path, errno));
  const bool closed = (info->mode & 0700U) != 0700U;
  if (closed) (void)!::fchmod(original.get(), info->mode | 0700U);
  if (closed) (void)!::fchmod(copy.get(), kept.st_mode | 0700U);
  const auto empty = [&]() -> Result<void> {
    constexpr int kTries = 1000;
    for (int tries = 0; tries < kTries; ++tries) {
      const auto names = namesIn(original.get(), path);
      if (!names) return fail(names.error());
      for (const std::string& below : *names) {
        auto removed = removeLevel({original.get(), below, copy.get(), below}, path + "/" + below, files, level + 1);
        if (!removed) return removed;
      }
      if (::unlinkat(object.from, object.name.c_str(), AT_REMOVEDIR) == 0) return {};
      if (errno != ENOTEMPTY && errno != EEXIST) return fail(copyError("rmdir", path, errno));
    }
    return fail(stillWritten(path));
  };
  const auto emptied = empty();
  if (closed) (void)!::fchmod(copy.get(), kept.st_mode & 07777U);
  if (closed && !emptied) (void)!::fchmod(original.get(), info->mode);
  const auto timed = setTimes(copy.get(), kept, path);
  return emptied ? timed : emptied;
}

/// Copies it under another name first, so that it is there in full or not at all.
Result<void> putBackWhole(int from, const std::string& as, int to, const std::string& name, const std::string& path) {
  if (moveNew(from, as, to, name) == 0) return {};
  const auto temporary = sys::unpredictableName();
  if (!temporary) return fail(copyError("getrandom", path, errno));
  auto put = copyForKeeping(from, as, to, *temporary, path);
  if (put) {
    if (const int error = moveNew(to, *temporary, to, name); error != 0) put = fail(copyError("rename", path, error));
  }
  if (!put) (void)sys::removeTreeAt(to, *temporary, path, Stage::state);
  return put;
}

Result<void> putBackLevel(int from, const std::string& as, int to, const std::string& name, const std::string& path,
                          int level) {
  const auto kept = infoAt(from, as);
  const auto there = infoAt(to, name);
  if (!kept) return {};
  if (!there) return putBackWhole(from, as, to, name, path);
  if (kept->type != FileType::directory || there->type != FileType::directory) return {};
  if (level >= kMaxLevels) return fail(copyError("copy", path, ENAMETOOLONG));
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const Fd copy(::openat(from, as.c_str(), kFlags)), original(::openat(to, name.c_str(), kFlags));
  struct stat status;
  if (!copy || !original || ::fstat(copy.get(), &status) != 0) return fail(copyError("open", path, errno));
  const auto names = namesIn(copy.get(), path);
  if (!names) return fail(names.error());
  // A directory in which nothing is missing is not touched: its change time would count as a change of the host.
  bool changed = false;
  Result<void> put;
  for (const std::string& below : *names) {
    const bool is_missing = !infoAt(original.get(), below);
    if (is_missing && !std::exchange(changed, true)) (void)!::fchmod(original.get(), there->mode | 0700U);
    put = putBackLevel(copy.get(), below, original.get(), below, path + "/" + below, level + 1);
    if (!put) break;
  }
  if (!changed) return put;
  (void)!::fchmod(original.get(), there->mode);
  return put ? setTimes(original.get(), status, path) : put;
}

}  // namespace

Result<void> copyOpenFile(int source, int file, const std::string& path) {
  struct stat status;
  if (::fstat(source, &status) != 0) return fail(copyError("stat", path, errno));
  const auto attributes = readAttributes(source, path);
  if (!attributes) return fail(attributes.error());
  const auto copied = readOnce(source, static_cast<std::uint64_t>(status.st_size), file, path);
  if (!copied) return fail(copied.error());
  const mode_t mode = takeOwner(file, {status.st_uid, status.st_gid}, status.st_mode & 07777U);
  if (auto set = setAttributes(file, *attributes, path); !set) return set;
  if (::fchmod(file, mode) != 0) return fail(copyError("chmod", path, errno));
  return setTimes(file, status, path);
}

Result<void> copyForKeeping(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                            CopiedFiles* files) {
  return copyLevel(from, name, to, as, path, files, 0);
}

Result<void> removeCopied(int from, const std::string& name, int to, const std::string& as, const std::string& path,
                          const CopiedFiles& files) {
  return removeLevel({from, name, to, as}, path, files, 0);
}

Result<void> putBackCopied(int from, const std::string& as, int to, const std::string& name, const std::string& path) {
  return putBackLevel(from, as, to, name, path, 0);
}

}  // namespace caisson::session
