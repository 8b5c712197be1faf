#include "session/commit/real_tree.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cerrno>
#include <vector>

#include "base/path_parts.h"
#include "sys/root_dir_resolve.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

Error failed(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

FileInfo fileInfoOf(const struct stat& status) {
  return {.type = sys::fileTypeOf(status.st_mode),
          .mode = status.st_mode & 07777U,
          .uid = status.st_uid,
          .gid = status.st_gid,
          .size = static_cast<std::uint64_t>(status.st_size),
          .blocks = static_cast<std::uint64_t>(status.st_blocks),
          .links = static_cast<std::uint64_t>(status.st_nlink),
          .inode = status.st_ino,
          .device = (std::uint64_t{major(status.st_dev)} << 32) | minor(status.st_dev),  // as RootDir
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

Result<int> RealTree::parentOf(const std::string& path, std::string& name) {
  const std::string directory = directoryOf(path);
  name = directory.empty() ? path : path.substr(directory.size() + 1);
  if (name.empty() || name == "." || name == "..") return fail(failed("open", path, EINVAL));
  if (parent_ && parent_path_ == directory) return parent_.get();
  Fd at(::openat(root_.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at) return fail(failed("open", root_.knownAs(), errno));
  for (std::size_t begin = 0; begin < directory.size();) {
    const std::size_t end = std::min(directory.find('/', begin), directory.size());
    const std::string part = directory.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return fail(failed("open", path, EINVAL));
    Fd next(::openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return fail(failed("open", directory.substr(0, end), errno));
    at = std::move(next);
    begin = end + 1;
  }
  parent_ = std::move(at);
  parent_path_ = directory;
  parent_facts_.reset();
  return parent_.get();
}

Result<RealTree::ParentFacts> RealTree::parentFacts() {
  if (parent_facts_) return *parent_facts_;
  struct stat status;
  if (::fstat(parent_.get(), &status) != 0) return fail(failed("stat", parent_path_, errno));
  const bool list = ::fgetxattr(parent_.get(), "system.posix_acl_default", nullptr, 0) > 0;
  parent_facts_ = ParentFacts{status.st_uid, status.st_gid, (status.st_mode & S_ISGID) != 0, list};
  return *parent_facts_;
}

Result<std::optional<FileInfo>> RealTree::look(const std::string& path) {
  std::string name;
  const auto parent = parentOf(path, name);
  if (!parent && parent.error().sys_errno == ENOENT) return std::nullopt;
  if (!parent) return fail(parent.error());
  struct stat status;
  if (::fstatat(*parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return fileInfoOf(status);
  if (errno == ENOENT) return std::nullopt;
  return fail(failed("stat", path, errno));
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

}  // namespace caisson::session
