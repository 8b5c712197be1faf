#include "session/commit/staging.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "session/commit/journal.h"
#include "session/commit/real_tree.h"
#include "session/layers/steps.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::RootDir;

constexpr std::size_t kCopyChunk = 256 * 1024, kBlock = 4096;

Error failed(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

/// Whether a rename from one directory to the other can work: it does not across mounts, even of one file system.
bool onOneMount(int a, int b) {
  struct statx left{}, right{};
  constexpr unsigned kMask = STATX_BASIC_STATS | STATX_MNT_ID;
  if (::statx(a, "", AT_EMPTY_PATH, kMask, &left) != 0 || ::statx(b, "", AT_EMPTY_PATH, kMask, &right) != 0)
    return false;
  return (left.stx_mask & right.stx_mask & STATX_MNT_ID) != 0 && left.stx_mnt_id == right.stx_mnt_id &&
         left.stx_dev_major == right.stx_dev_major && left.stx_dev_minor == right.stx_dev_minor;
}

Result<StagedObject> objectAt(int directory, const std::string& name, const std::string& path) {
  struct stat status;
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return fail(failed("stat", path, errno));
  const sys::FileInfo info = fileInfoOf(status);
  return StagedObject{info.device, info.inode, info.modified_ns};
}

bool isZero(const char* data, std::size_t size) {
  return std::all_of(data, data + size, [](char byte) { return byte == 0; });
}

Result<void> writeAt(int to, const char* data, std::size_t size, std::uint64_t offset, const std::string& path) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = ::pwrite(to, data + done, size - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(failed("write", path, errno));
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

/// Writes a chunk without its blocks of zeros, which stay holes. Returns where the last write ended, or 0 if there was
/// none.
Result<std::uint64_t> writeData(int to, const char* data, std::size_t size, std::uint64_t offset,
                                const std::string& path) {
  const auto is_hole = [&](std::size_t at) { return size - at >= kBlock && isZero(data + at, kBlock); };
  std::uint64_t written = 0;
  for (std::size_t begin = 0; begin < size;) {
    std::size_t end = begin;
    while (end < size && !is_hole(end)) end = std::min(end + kBlock, size);
    if (end == begin) {
      begin += kBlock;
      continue;
    }
    if (auto wrote = writeAt(to, data + begin, end - begin, offset + begin, path); !wrote) return fail(wrote.error());
    written = offset + end;
    begin = end;
  }
  return written;
}

template <class Fill>
Result<StagedObject> makeFile(int directory, const std::string& name, const FileRights& rights, const std::string& path,
                              const Fill& fill) {
  mode_t mode = rights.mode;
  // No other user can enter the directory, so the mode may be final at once; the umask or an access list can take bits
  // away.
  const Fd file(::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file) return fail(failed("create", path, errno));
  if (auto filled = fill(file.get()); !filled) return fail(filled.error());
  if (rights.owner) mode = takeOwner(file.get(), *rights.owner, mode);
  if (!rights.attributes.empty()) {
    if (auto set = setAttributes(file.get(), rights.attributes, path); !set) return fail(set.error());
  }
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return fail(failed("write", path, errno));
  if ((status.st_mode & 07777U) != mode && ::fchmod(file.get(), mode) != 0) return fail(failed("chmod", path, errno));
  const sys::FileInfo info = fileInfoOf(status);
  return StagedObject{info.device, info.inode, info.modified_ns, mode};
}

}  // namespace

Result<ReadFile> readOnce(int source, std::uint64_t size, int to, const std::string& path) {
  // A clone is a snapshot: hash that, since the source may change meanwhile.
  const bool cloned = to >= 0 && ::ioctl(to, FICLONE, source) == 0;
  if (cloned) source = to;
  Sha256 digest;
  thread_local std::vector<char> buffer(kCopyChunk);
  std::uint64_t offset = 0, written = 0;
  while (offset < size) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kCopyChunk, size - offset));
    const ssize_t got = ::pread(source, buffer.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(failed("read", path, errno));
    if (got == 0) break;  // it was cut meanwhile
    const auto count = static_cast<std::size_t>(got);
    digest.add(buffer.data(), count);
    if (to >= 0 && !cloned) {
      const auto end = writeData(to, buffer.data(), count, offset, path);
      if (!end) return fail(end.error());
      written = std::max(written, *end);
    }
    offset += count;
  }
  const bool whole = !cloned && written == offset;  // else it ends in a hole, or the clone is longer
  if (to >= 0 && !whole && ::ftruncate(to, static_cast<off_t>(offset)) != 0) {
    return fail(failed("truncate", path, errno));
  }
  return ReadFile{offset, digest.finish()};
}

Result<Staging> Staging::create(const RootDir& session, const RootDir& real) {
  if (auto removed = remove(session, &real); !removed) return fail(removed.error());
  // Write the name before the directory is made: recovery must find it if this process is killed.
  bool in_session = onOneMount(session.descriptor(), real.descriptor());
  if (!in_session) {
    const auto name = sys::unpredictableName();
    if (!name) return fail(failed("getrandom", real.knownAs(), errno));
    if (auto written = session.writeFileAtomic(kStagingName, *name, 0600); !written) return fail(written.error());
    in_session = ::mkdirat(real.descriptor(), name->c_str(), 0700) != 0;
    // The workspace's top may be read-only to us, with writable directories below. Then stage in the session's
    // directory; each file is copied beside its place when it is applied.
    if (in_session && errno != EACCES && errno != EPERM) return fail(failed("mkdir", real.knownAs(), errno));
  }
  if (in_session) {
    if (auto written = session.replaceFile(kStagingName, "", 0600); !written) return fail(written.error());
    if (auto made = session.makeDirs(kStagingDirectory, 0700); !made) return fail(made.error());
  }
  step("commit: staging made");
  auto made = open(session, real);
  if (!made) return made;
  // What is made in it would inherit a list of the directory that it was made in, and take that to its place.
  if (auto cleared = setAttributes(made->descriptor(), {}, kStagingDirectory); !cleared) return fail(cleared.error());
  return made;
}

Result<Staging> Staging::open(const RootDir& session, const RootDir& real) {
  const auto name = session.readFile(kStagingName, 256);
  if (!name) return fail(name.error());
  const RootDir& parent = name->empty() ? session : real;
  Fd directory(::openat(parent.descriptor(), name->empty() ? kStagingDirectory : name->c_str(),
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return fail(failed("open", kStagingDirectory, errno));
  return Staging(std::move(directory), !name->empty());
}

Result<void> Staging::remove(const RootDir& session, const RootDir* real) {
  if (auto removed = session.remove(kPlaced); !removed) return removed;
  const auto name = session.readFile(kStagingName, 256);
  if (!name && name.error().sys_errno == ENOENT) return {};
  if (!name) return fail(name.error());
  if (name->empty()) {
    if (auto removed = session.removeTree(kStagingDirectory); !removed) return removed;
  } else if (real == nullptr) {
    return {};  // it is removed when the workspace is back
  } else {
    if (auto removed = sys::removeTreeAt(real->descriptor(), *name, *name, Stage::state); !removed) return removed;
  }
  return session.remove(kStagingName);
}

Result<StagedObject> Staging::addFile(const std::string& name, int source, std::uint64_t size, const FileRights& rights,
                                      ReadFile& read, const std::string& path) const {
  return makeFile(directory_.get(), name, rights, path, [&](int file) -> Result<void> {
    auto copied = readOnce(source, size, file, path);
    if (!copied) return fail(copied.error());
    read = *copied;
    return {};
  });
}

Result<StagedObject> Staging::addContent(const std::string& name, std::string_view content, const FileRights& rights,
                                         const std::string& path) const {
  return makeFile(directory_.get(), name, rights, path,
                  [&](int file) { return writeAt(file, content.data(), content.size(), 0, path); });
}

Result<StagedObject> Staging::addLink(const std::string& name, const std::string& target,
                                      const std::string& path) const {
  if (::symlinkat(target.c_str(), directory_.get(), name.c_str()) != 0) return fail(failed("symlink", path, errno));
  return objectAt(directory_.get(), name, path);
}

Result<StagedObject> Staging::addDirectory(const std::string& name, mode_t mode, const std::string& path) const {
  if (::mkdirat(directory_.get(), name.c_str(), 0700) != 0) return fail(failed("mkdir", path, errno));
  const Fd made(::openat(directory_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made || ::fchmod(made.get(), mode) != 0) return fail(failed("mkdir", path, errno));
  return objectAt(directory_.get(), name, path);
}

Result<void> Staging::drop(const std::string& name) const {
  return sys::removeTreeAt(directory_.get(), name, name, Stage::state);
}

Result<void> Staging::sync() const {
  if (::syncfs(directory_.get()) != 0) return fail(failed("syncfs", "the staged files", errno));
  return {};
}

}  // namespace caisson::session
