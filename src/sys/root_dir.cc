#include "sys/root_dir.h"

#include <dirent.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <optional>

#include "sys/remove_tree.h"
#include "sys/root_dir_resolve.h"

namespace caisson::sys {
namespace {

constexpr int kCreateRetries = 16;

int errnoForWrongType(FileType type, const FileTypes& wanted) {
  if (type == FileType::link) return ELOOP;
  if (type == FileType::directory) return EISDIR;
  return wanted.has(FileType::directory) ? ENOTDIR : EINVAL;
}

bool isDevice(FileType type) { return type == FileType::character_device || type == FileType::block_device; }

std::int64_t nanoseconds(const struct statx_timestamp& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

/// Opens the object behind an O_PATH descriptor, even if its name was swapped. Uses /proc; without /proc, opens the
/// name again. Both results are checked against the descriptor, since neither the name nor the mount on /proc can be
/// trusted (runc CVE-2025-52881).
std::expected<Fd, int> openBehind(int handle, const struct statx& info, int parent, const std::string& name,
                                  int flags) {
  // O_TRUNC is applied only after the identity check. O_NONBLOCK: a FIFO without a peer would block forever.
  const int careful = (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Fd file;
  if (S_ISDIR(info.stx_mode)) {
    file = Fd(::openat(handle, ".", careful | O_DIRECTORY));
    if (!file) return std::unexpected(errno);
  } else {
    std::array<char, 40> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", handle);
    file = Fd(::open(link.data(), careful));
    if (!file && errno == ENOENT) file = Fd(::openat(parent, name.c_str(), careful | O_NOFOLLOW));
    if (!file) return std::unexpected(errno);
  }
  auto opened = inspect(file.get(), "");
  if (!opened) return std::unexpected(opened.error());
  if (!sameObject(*opened, info)) return std::unexpected(EAGAIN);
  if ((flags & O_TRUNC) != 0 && S_ISREG(info.stx_mode) && ::ftruncate(file.get(), 0) != 0) {
    return std::unexpected(errno);
  }
  if (!S_ISFIFO(info.stx_mode)) {
    const int now = ::fcntl(file.get(), F_GETFL);
    if (now < 0 || ::fcntl(file.get(), F_SETFL, now & ~O_NONBLOCK) != 0) return std::unexpected(errno);
  }
  return file;
}

int writeAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int syncDescriptor(int fd) {
  if (::fsync(fd) == 0 || errno == EINVAL || errno == EROFS) return 0;  // this file system does not support fsync
  return errno;
}

int renameOver(int parent, const std::string& from, const std::string& to) {
  return ::renameat(parent, from.c_str(), parent, to.c_str()) == 0 ? 0 : errno;
}

/// renameOver() that exchanges both names and removes the old file, where the file system can do that. The old file
/// lives until `replaced` is closed.
int exchangeNames(int parent, const std::string& from, const std::string& to, Fd& replaced) {
  if (::renameat2(parent, from.c_str(), parent, to.c_str(), RENAME_EXCHANGE) != 0) return renameOver(parent, from, to);
  replaced = Fd(::openat(parent, from.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (::unlinkat(parent, from.c_str(), 0) == 0) return 0;
  const int error = errno;  // a directory had that name
  (void)::renameat2(parent, from.c_str(), parent, to.c_str(), RENAME_EXCHANGE);
  return error;
}

}  // namespace

std::string_view name(FileType type) {
  switch (type) {
    case FileType::unknown: return "unknown object";
    case FileType::regular: return "regular file";
    case FileType::directory: return "directory";
    case FileType::link: return "symbolic link";
    case FileType::fifo: return "FIFO";
    case FileType::socket: return "socket";
    case FileType::character_device: return "character device";
    case FileType::block_device: return "block device";
  }
  return "unknown object";
}

FileType fileTypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return FileType::regular;
    case S_IFDIR: return FileType::directory;
    case S_IFLNK: return FileType::link;
    case S_IFIFO: return FileType::fifo;
    case S_IFSOCK: return FileType::socket;
    case S_IFCHR: return FileType::character_device;
    case S_IFBLK: return FileType::block_device;
    default: return FileType::unknown;
  }
}

FileInfo fileInfoOf(const struct statx& info) {
  return {.type = fileTypeOf(info.stx_mode),
          .mode = info.stx_mode & mode_t{07777},
          .uid = info.stx_uid,
          .gid = info.stx_gid,
          .size = info.stx_size,
          .blocks = info.stx_blocks,
          .links = info.stx_nlink,
          .inode = info.stx_ino,
          .device = (std::uint64_t{info.stx_dev_major} << 32) | info.stx_dev_minor,
          .modified_ns = nanoseconds(info.stx_mtime),
          .changed_ns = nanoseconds(info.stx_ctime)};
}

std::unexpected<Error> RootDir::refuse(std::string_view call, std::string_view object, int sys_errno,
                                       std::string_view reason) const {
  Error error = sysError(options_.stage, call, object, sys_errno);
  error.reason = reason;
  if (sys_errno == ENOSPC || sys_errno == EDQUOT) error.hint = "free some space where " + knownAs() + " lies";
  if (sys_errno == EROFS) error.hint = knownAs() + " lies on a file system that is mounted read-only";
  return std::unexpected(std::move(error));
}

Result<RootDir> RootDir::open(const std::string& path, RootDirOptions options) {
  if (options.known_as.empty()) options.known_as = path;
  Fd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(sysError(options.stage, "open root", path, errno));
  return RootDir(std::move(root), std::move(options));
}

Result<RootDir> RootDir::adopt(Fd directory, RootDirOptions options) {
  struct stat info{};
  if (::fstat(directory.get(), &info) != 0) return fail(sysError(options.stage, "fstat", options.known_as, errno));
  if (!S_ISDIR(info.st_mode)) return fail(sysError(options.stage, "adopt root", options.known_as, ENOTDIR));
  return RootDir(std::move(directory), std::move(options));
}

Result<RootDir> RootDir::share(int directory, RootDirOptions options) {
  Fd copy(::fcntl(directory, F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(sysError(options.stage, "fcntl", options.known_as, errno));
  return RootDir(std::move(copy), std::move(options));
}

Result<Fd> RootDir::resolve(std::string_view call, std::string_view relative, const std::string& directory,
                            bool stay_on_mount) const {
  auto found = resolveDirectory(root_.get(), directory,
                                {.stay_on_mount = stay_on_mount,
                                 .by_hand = options_.walk_by_hand,
                                 .refuse_links_out = options_.refuse_links_out,
                                 .known_as = options_.known_as});
  if (found) return std::move(*found);
  if (found.error() == kLeadsOut) {
    return fail(withCode(plainError(options_.stage, call, relative, "a link in it leads out of " + options_.known_as),
                         ErrorCode::path_escapes));
  }
  return refuse(call, relative, found.error(), found.error() == EXDEV ? "it lies on another mount" : "");
}

Result<RootDir::Place> RootDir::locate(std::string_view call, std::string_view relative, bool stay_on_mount) const {
  auto path = splitPath(relative, options_.known_as);
  if (!path && path.error() == BadRequest::nul_byte) return refuse(call, "", EINVAL, "the path holds a NUL byte");
  if (!path) {
    return fail(withCode(plainError(options_.stage, call, relative, "climbs out of " + options_.known_as),
                         ErrorCode::path_escapes));
  }
  auto parent = resolve(call, relative, path->directory, stay_on_mount);
  if (!parent) return std::unexpected(std::move(parent.error()));
  return Place{std::move(*parent), std::move(path->name)};
}

Result<RootDir::Place> RootDir::locateName(std::string_view call, std::string_view relative, bool stay_on_mount) const {
  auto place = locate(call, relative, stay_on_mount);
  if (place && place->name.empty()) return refuse(call, relative, EINVAL, "the path must end in a name");
  return place;
}

Result<RootDir> RootDir::enter(std::string_view relative) const {
  auto path = splitPath(relative, options_.known_as);
  if (!path) return std::unexpected(locate("enter", relative).error());
  const std::string whole = path->directory + (path->name.empty() ? "" : "/" + path->name);
  auto directory = resolve("enter", relative, whole);
  if (!directory) return std::unexpected(std::move(directory.error()));
  RootDirOptions options = options_;
  if (!whole.empty()) options.known_as += (options.known_as.ends_with('/') ? "" : "/") + whole;
  return RootDir(std::move(*directory), std::move(options));
}

Result<Fd> RootDir::openPlace(const Place& place, std::string_view relative, const OpenOptions& options) const {
  Fd handle(place.name.empty() ? ::fcntl(place.parent.get(), F_DUPFD_CLOEXEC, 3)
                               : ::openat(place.parent.get(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!handle) return refuse("open", relative, errno);
  auto info = inspect(handle.get(), "");
  if (!info) return refuse("open", relative, info.error());
  const FileType type = fileTypeOf(info->stx_mode);
  if (!options.types.has(type)) {
    return refuse("open", relative, errnoForWrongType(type, options.types),
                  "it is a " + std::string(name(type)) + ", which was not asked for");
  }
  if ((options.flags & O_PATH) != 0) return handle;
  // Opening a device has effects (tapes rewind, watchdogs start), and the payload chose the device.
  if (isDevice(type)) return refuse("open", relative, EPERM, "devices are never opened");
  auto file = openBehind(handle.get(), *info, place.parent.get(), place.name, options.flags);
  if (!file) return refuse("open", relative, file.error());
  return std::move(*file);
}

Result<Fd> RootDir::openFile(std::string_view relative, OpenOptions options) const {
  constexpr int kKnown = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_PATH;
  if ((options.flags & ~kKnown) != 0) return refuse("open", relative, EINVAL, "unsupported open flags");
  const bool create = (options.flags & O_CREAT) != 0;
  auto place = create ? locateName("open", relative) : locate("open", relative);
  if (!place) return std::unexpected(place.error());
  if (!create) return openPlace(*place, relative, options);

  // O_EXCL guarantees that what we create is a new regular file; existing files go through the checks.
  for (int attempt = 0; attempt < kCreateRetries; ++attempt) {
    const int flags = (options.flags & ~O_TRUNC) | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    Fd file(::openat(place->parent.get(), place->name.c_str(), flags, options.mode));
    if (file) return file;
    if (errno != EEXIST || (options.flags & O_EXCL) != 0) return refuse("create", relative, errno);
    auto existing = openPlace(*place, relative, options);
    if (existing || existing.error().sys_errno != ENOENT) return existing;
  }
  return refuse("create", relative, EAGAIN, "it appears and disappears while we open it");
}

Result<void> RootDir::makeDirs(std::string_view relative, mode_t mode) const {
  auto path = splitPath(relative, options_.known_as);
  if (!path) return std::unexpected(locate("mkdir", relative).error());
  const std::string whole = path->directory + (path->name.empty() ? "" : "/" + path->name);
  auto here = resolve("mkdir", relative, "");
  // Resolves each prefix from the root, so that a link in the middle (`var/run -> /run`) resolves as it would at the
  // end.
  for (std::size_t end = 0; here && end < whole.size();) {
    const std::size_t begin = whole[end] == '/' ? end + 1 : end;
    end = std::min(whole.find('/', begin), whole.size());
    auto next = resolve("mkdir", relative, whole.substr(0, end));
    if (!next && next.error().sys_errno == ENOENT) {
      const std::string part = whole.substr(begin, end - begin);
      if (::mkdirat(here->get(), part.c_str(), mode) != 0 && errno != EEXIST) return refuse("mkdir", relative, errno);
      // O_NOFOLLOW: a racing payload may have placed a link here.
      Fd made(::openat(here->get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!made) return refuse("mkdir", relative, errno, "\"" + part + "\" is in the way");
      next = std::move(made);
    }
    here = std::move(next);
  }
  if (!here) return std::unexpected(std::move(here.error()));
  return {};
}

Result<std::string> RootDir::readFile(std::string_view relative, std::uint64_t max_bytes) const {
  auto file = openFile(relative, {});
  if (!file) return std::unexpected(file.error());
  std::string data;
  std::array<char, 65536> chunk;
  for (;;) {
    const ssize_t count = ::read(file->get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse("read", relative, errno);
    if (count == 0) return data;
    if (data.size() + static_cast<std::size_t>(count) > max_bytes) {
      return refuse("read", relative, EFBIG, "it is longer than " + std::to_string(max_bytes) + " bytes");
    }
    data.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

Result<void> RootDir::writeFileAtomic(std::string_view relative, std::string_view data, mode_t mode) const {
  if (auto put = putFile(relative, data, mode, Put::durable); !put) return std::unexpected(put.error());
  return {};
}

Result<void> RootDir::replaceFile(std::string_view relative, std::string_view data, mode_t mode) const {
  if (auto put = putFile(relative, data, mode, Put::replace); !put) return std::unexpected(put.error());
  return {};
}

Result<Fd> RootDir::exchangeFile(std::string_view relative, std::string_view data, mode_t mode) const {
  return putFile(relative, data, mode, Put::exchange);
}

Result<Fd> RootDir::putFile(std::string_view relative, std::string_view data, mode_t mode, Put how) const {
  const bool durable = how == Put::durable;
  auto place = locateName("write", relative);
  if (!place) return std::unexpected(place.error());
  const int parent = place->parent.get();
  Fd directory(::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // O_PATH cannot be fsynced
  if (!directory) return refuse("open directory of", relative, errno);
  const std::optional<std::string> temporary = unpredictableName();
  if (!temporary) return refuse("getrandom", relative, errno);
  Fd file(::openat(parent, temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return refuse("create", relative, errno);
  int error = writeAll(file.get(), data);
  if (error == 0 && ::fchmod(file.get(), mode) != 0) error = errno;
  if (error == 0 && durable) error = syncDescriptor(file.get());
  Fd replaced;
  if (error == 0)
    error = how == Put::exchange ? exchangeNames(parent, *temporary, place->name, replaced)
                                 : renameOver(parent, *temporary, place->name);
  if (error != 0) {
    ::unlinkat(parent, temporary->c_str(), 0);
    return refuse("write", relative, error);
  }
  if (error = durable ? syncDescriptor(directory.get()) : 0; error != 0) return refuse("fsync", relative, error);
  return replaced;
}

Result<void> RootDir::makeDurable(std::string_view relative) const {
  auto place = locateName("sync", relative);
  if (!place) return std::unexpected(place.error());
  const int parent = place->parent.get();
  const Fd file(::openat(parent, place->name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return refuse("open", relative, errno);
  const Fd directory(::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return refuse("open directory of", relative, errno);
  int error = syncDescriptor(file.get());
  if (error == 0) error = syncDescriptor(directory.get());
  if (error != 0) return refuse("fsync", relative, error);
  return {};
}

Result<void> RootDir::openToOwner(std::string_view relative) const {
  auto directory = openFile(relative, {.flags = O_PATH, .types = {FileType::directory}});
  if (!directory) return std::unexpected(directory.error());
  struct stat status{};
  if (::fstat(directory->get(), &status) != 0) return refuse("stat", relative, errno);
  unlockDirectory(directory->get(), status.st_mode);
  return {};
}

Result<FileInfo> RootDir::stat(std::string_view relative) const {
  auto place = locate("stat", relative);
  if (!place) return std::unexpected(place.error());
  auto info = inspect(place->parent.get(), place->name.c_str());
  if (!info) return refuse("stat", relative, info.error());
  return fileInfoOf(*info);
}

Result<std::string> RootDir::readLink(std::string_view relative) const {
  auto place = locateName("readlink", relative);
  if (!place) return std::unexpected(place.error());
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlinkat(place->parent.get(), place->name.c_str(), text.data(), text.size());
  if (length < 0) return refuse("readlink", relative, errno);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

Result<std::vector<DirectoryEntry>> RootDir::list(std::string_view relative, std::size_t max_entries) const {
  auto opened = openFile(relative, {.types = {FileType::directory}});
  if (!opened) return std::unexpected(opened.error());
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(opened->get()), ::closedir);
  if (!stream) return refuse("list", relative, errno);
  const int directory = opened->release();  // the stream owns it now
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return refuse("list", relative, errno);
    if (entry == nullptr) break;
    const std::string_view entry_name(entry->d_name);
    if (entry_name == "." || entry_name == "..") continue;
    if (entries.size() == max_entries) {
      return refuse("list", relative, EFBIG, "it has more than " + std::to_string(max_entries) + " entries");
    }
    FileType type = fileTypeOf(DTTOIF(entry->d_type));
    if (type == FileType::unknown) {
      if (auto info = inspect(directory, entry->d_name)) type = fileTypeOf(info->stx_mode);
    }
    entries.push_back({std::string(entry_name), type});
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

Result<void> RootDir::rename(std::string_view from, std::string_view to, bool replace) const {
  auto source = locateName("rename", from);
  if (!source) return std::unexpected(source.error());
  auto target = locateName("rename", to);
  if (!target) return std::unexpected(target.error());
  if (::renameat2(source->parent.get(), source->name.c_str(), target->parent.get(), target->name.c_str(),
                  replace ? 0 : RENAME_NOREPLACE) != 0) {
    return refuse("rename", std::string(from) + " -> " + std::string(to), errno);
  }
  return {};
}

Result<void> RootDir::remove(std::string_view relative) const {
  auto place = locateName("remove", relative, true);
  if (!place && place.error().sys_errno == ENOENT) return {};
  if (!place) return std::unexpected(place.error());
  if (::unlinkat(place->parent.get(), place->name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return refuse("remove", relative, errno);
  if (::unlinkat(place->parent.get(), place->name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return refuse("remove", relative, errno);
}

Result<void> RootDir::removeTree(std::string_view relative) const {
  auto place = locate("remove tree", relative, true);
  if (!place && place.error().sys_errno == ENOENT) return {};
  if (!place) return std::unexpected(place.error());
  return removeTreeAt(place->parent.get(), place->name, relative.empty() ? options_.known_as : std::string(relative),
                      options_.stage);
}

}  // namespace caisson::sys
