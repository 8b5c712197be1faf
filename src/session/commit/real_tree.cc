#include "session/commit/real_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "session/layers/steps.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

constexpr std::size_t kChunk = 256 * 1024;

Error failed(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

/// A root caller's commit does not leave root's files in somebody's project.
void giveToOwnerOf(int directory, int file) {
  struct stat status;
  if (::geteuid() == 0 && ::fstat(directory, &status) == 0) (void)!::fchown(file, status.st_uid, status.st_gid);
}

Result<void> copyBytes(int from, int to, const std::string& path) {
  std::vector<char> buffer(kChunk);
  for (off_t offset = 0;;) {
    const ssize_t got = ::pread(from, buffer.data(), buffer.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(failed("read", path, errno));
    if (got == 0) return {};
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = ::write(to, buffer.data() + done, static_cast<std::size_t>(got - done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return fail(failed("write", path, errno));
      done += wrote;
    }
    offset += got;
  }
}

}  // namespace

Result<Fd> RealTree::parentOf(const std::string& path, bool make, std::string& name) const {
  Fd at(::openat(root_.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at) return fail(failed("open", root_.knownAs(), errno));
  std::size_t begin = 0;
  for (std::size_t slash; (slash = path.find('/', begin)) != std::string::npos; begin = slash + 1) {
    const std::string part = path.substr(begin, slash - begin);
    if (part.empty() || part == "." || part == "..") return fail(failed("open", path, EINVAL));
    int next = ::openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno == ENOENT && make) {
      if (::mkdirat(at.get(), part.c_str(), 0755) != 0 && errno != EEXIST) return fail(failed("mkdir", path, errno));
      next = ::openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      if (next >= 0) giveToOwnerOf(at.get(), next);
    }
    if (next < 0) return fail(failed("open", path.substr(0, slash), errno));
    at = Fd(next);
  }
  name = path.substr(begin);
  if (name.empty() || name == "." || name == "..") return fail(failed("open", path, EINVAL));
  return at;
}

Result<std::optional<FileInfo>> RealTree::look(const std::string& path) const {
  std::string name;
  auto parent = parentOf(path, false, name);
  if (!parent && parent.error().sys_errno == ENOENT) return std::nullopt;
  if (!parent) return fail(parent.error());
  auto directory = sys::RootDir::adopt(std::move(*parent), {.known_as = root_.knownAs()});
  if (!directory) return fail(directory.error());
  auto info = directory->stat(name);
  if (!info && info.error().sys_errno == ENOENT) return std::nullopt;
  if (!info) return fail(info.error());
  return *info;
}

bool RealTree::changedBelow(const std::string& path, std::int64_t since_ns,
                            const std::function<bool(const std::string&, const FileInfo&)>& ours) const {
  std::vector<std::string> pending{path};
  while (!pending.empty()) {
    const std::string directory = std::move(pending.back());
    pending.pop_back();
    const auto entries = root_.list(directory);
    if (!entries) return true;
    for (const sys::DirectoryEntry& entry : *entries) {
      const std::string below = directory + "/" + entry.name;
      const auto info = root_.stat(below);
      if (!info) return true;
      if (info->type == FileType::directory) {
        pending.push_back(below);
      } else if (info->changed_ns > since_ns && !ours(below, *info)) {
        return true;
      }
    }
  }
  return false;
}

Result<void> RealTree::putFile(const std::string& path, int source, mode_t mode) const {
  std::string name;
  auto parent = parentOf(path, true, name);
  if (!parent) return fail(parent.error());
  const auto hidden = sys::unpredictableName();
  if (!hidden) return fail(failed("getrandom", path, errno));
  const Fd file(::openat(parent->get(), hidden->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(failed("create", path, errno));
  Result<void> done = copyBytes(source, file.get(), path);
  if (done && (::fchmod(file.get(), mode) != 0 || ::fsync(file.get()) != 0)) done = fail(failed("write", path, errno));
  giveToOwnerOf(parent->get(), file.get());
  step("commit: one copied");
  struct stat there;
  if (done && ::fstatat(parent->get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode)) {
    done = sys::removeTreeAt(parent->get(), name, path, Stage::state);
  }
  if (done && ::renameat(parent->get(), hidden->c_str(), parent->get(), name.c_str()) != 0) {
    done = fail(failed("rename", path, errno));
  }
  if (!done) (void)!::unlinkat(parent->get(), hidden->c_str(), 0);
  return done;
}

Result<void> RealTree::putLink(const std::string& path, const std::string& target) const {
  std::string name;
  auto parent = parentOf(path, true, name);
  if (!parent) return fail(parent.error());
  const auto hidden = sys::unpredictableName();
  if (!hidden) return fail(failed("getrandom", path, errno));
  if (::symlinkat(target.c_str(), parent->get(), hidden->c_str()) != 0) return fail(failed("symlink", path, errno));
  struct stat there;
  Result<void> done;
  if (::fstatat(parent->get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode)) {
    done = sys::removeTreeAt(parent->get(), name, path, Stage::state);
  }
  if (done && ::renameat(parent->get(), hidden->c_str(), parent->get(), name.c_str()) != 0) {
    done = fail(failed("rename", path, errno));
  }
  if (!done) (void)!::unlinkat(parent->get(), hidden->c_str(), 0);
  return done;
}

Result<void> RealTree::putDirectory(const std::string& path, mode_t mode) const {
  std::string name;
  auto parent = parentOf(path, true, name);
  if (!parent) return fail(parent.error());
  struct stat there;
  if (::fstatat(parent->get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(there.st_mode)) {
    if (::unlinkat(parent->get(), name.c_str(), 0) != 0) return fail(failed("unlink", path, errno));
  }
  if (::mkdirat(parent->get(), name.c_str(), 0700) != 0 && errno != EEXIST) return fail(failed("mkdir", path, errno));
  const Fd made(::openat(parent->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made || ::fchmod(made.get(), mode) != 0) return fail(failed("mkdir", path, errno));
  giveToOwnerOf(parent->get(), made.get());
  return {};
}

Result<void> RealTree::remove(const std::string& path) const {
  std::string name;
  auto parent = parentOf(path, false, name);
  if (!parent && parent.error().sys_errno == ENOENT) return {};
  if (!parent) return fail(parent.error());
  return sys::removeTreeAt(parent->get(), name, path, Stage::state);
}

}  // namespace caisson::session
