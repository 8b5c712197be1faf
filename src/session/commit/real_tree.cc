#include "session/commit/real_tree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
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
  if (const auto pinned = pinned_.find(directory); pinned != pinned_.end()) {
    struct stat status;
    if (::fstat(at.get(), &status) != 0) return fail(failed("stat", directory, errno));
    const FileInfo info = fileInfoOf(status);
    if (pinned->second != std::pair(info.device, info.inode)) {
      return fail(plainError(Stage::state, "open", directory,
                             "it is another directory there now: it was moved or replaced meanwhile", "commit again"));
    }
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

void RealTree::syncFile(const std::string& path) {
  std::string name;
  const auto parent = parentOf(path, name);
  if (synced_ || !parent) return;
  const Fd file(::openat(*parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return;
  struct statfs system{};
  // Of an overlay's files only fsync reaches the pages; elsewhere, a flush of the disk's cache is saved.
  constexpr unsigned kAll = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const bool overlay = ::fstatfs(file.get(), &system) != 0 || system.f_type == OVERLAYFS_SUPER_MAGIC;
  if (overlay || ::sync_file_range(file.get(), 0, 0, kAll) != 0) (void)::fdatasync(file.get());
}

bool RealTree::isOpenForWriting(const std::string& path) {
  std::string name;
  const auto parent = parentOf(path, name);
  return parent && session::isOpenForWriting(*parent, name);
}

bool isOpenForWriting(int directory, const std::string& name) {
  const Fd file(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file && isOpenForWriting(file.get());
}

bool isOpenForWriting(int file) {
  struct statfs system{};
  if (::fstatfs(file, &system) != 0 || system.f_type == NFS_SUPER_MAGIC) return false;
  // A program that opens it before the lease is gone waits for that, and the kernel sends this signal, which does
  // nothing by default. The default one would end the process.
  if (::fcntl(file, F_SETSIG, SIGURG) != 0) return false;
  if (::fcntl(file, F_SETLEASE, F_RDLCK) != 0) return errno == EAGAIN;
  (void)::fcntl(file, F_SETLEASE, F_UNLCK);
  return false;
}

void RealTree::syncAll() {
  if (synced_) return;
  const Fd top(::openat(root_.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  synced_ = top && ::syncfs(top.get()) == 0;
}

std::optional<RealTree::DirectoryInfo> RealTree::lookAtDirectory(const std::string& path) {
  std::string name = ".";
  const auto parent = path.empty() ? Result<int>(root_.descriptor()) : parentOf(path, name);
  if (!parent) return std::nullopt;
  const auto there = sys::inspect(*parent, name.c_str()), top = sys::inspect(root_.descriptor(), "");
  if (!there || !top || !S_ISDIR(there->stx_mode)) return std::nullopt;
  return DirectoryInfo{sys::fileInfoOf(*there), !sys::sameMount(*there, *top)};
}

void RealTree::pin(const std::string& directory) {
  if (pinned_.contains(directory)) return;
  if (const auto there = lookAtDirectory(directory)) pinned_[directory] = {there->info.device, there->info.inode};
}

std::uint64_t preciseDevice(int directory) {
  struct statfs system{};
  struct statx status{};
  if (::fstatfs(directory, &system) != 0) return 0;
  if (::statx(directory, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) != 0) return 0;
  constexpr unsigned long kPrecise[] = {XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, TMPFS_MAGIC};
  const auto type = static_cast<unsigned long>(system.f_type);
  // Inodes of ext4 that have room for the time of their birth have room for nanoseconds.
  const bool ext4 = type == EXT4_SUPER_MAGIC && (status.stx_mask & STATX_BTIME) != 0;
  if (!ext4 && std::ranges::find(kPrecise, type) == std::end(kPrecise)) return 0;
  return sys::fileInfoOf(status).device;
}

bool isChangedSince(const DirectoryToCheck& directory, std::int64_t since_ns, const IsOurs& ours) {
  const std::uint64_t precise = preciseDevice(directory.root.descriptor());
  const auto is_changed = [&](const std::string& path, const FileInfo& info) {
    if (!isLater(info, since_ns, precise) || ours(path, info)) return false;
    return info.type != FileType::directory || !ours(path + "/", info);
  };
  const auto top = directory.root.stat(directory.at);
  if (!top || (!directory.moved && is_changed(directory.path, *top))) return true;
  std::vector<std::string> pending{""};
  while (!pending.empty()) {
    const std::string below = std::move(pending.back());
    pending.pop_back();
    const auto entries = directory.root.list(directory.at + below);
    if (!entries) return true;
    for (const sys::DirectoryEntry& entry : *entries) {
      std::string name = below + "/" + entry.name;
      const auto info = directory.root.stat(directory.at + name);
      if (!info || info->device != top->device || is_changed(directory.path + name, *info)) return true;
      if (directory.moved && info->type == FileType::regular) {
        const auto file = directory.root.openFile(directory.at + name, {});
        if (file && isOpenForWriting(file->get())) return true;
      }
      if (info->type == FileType::directory) pending.push_back(std::move(name));
    }
  }
  return false;
}

}  // namespace caisson::session
