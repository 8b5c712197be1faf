// Reads and writes files of a session from outside, through the sandbox's mounts.
//
// The supervisor provides the workspace or the sandbox's root; RootDir resolves everything beneath it. So the kernel
// merges the layers, and links planted by a payload cannot lead outside. What is outside the workspace is accessed with
// the rights of a command (command_rights.h).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plan/filesystem.h"
#include "policy/decode/syntax.h"
#include "session/client/as_payload.h"
#include "session/client/session_context.h"
#include "session/layers/layer_sizes.h"
#include "session/store/rollback.h"
#include "session/tier/tier_files.h"

namespace caisson::session {
namespace {

using sys::FileType;
using sys::RootDir;

constexpr mode_t kNewFileMode = 0644;
constexpr std::size_t kMaxListed = 50'000;  // entries of a directory, which are held in memory
constexpr mode_t kSafeBits = 0777;          // never setuid, setgid or sticky

Result<FilePiece> readPiece(const RootDir& root, std::string_view path, std::uint64_t offset, std::uint64_t max_bytes) {
  auto file = root.openFile(path, {.flags = O_RDONLY});
  if (!file) return fail(file.error());
  struct stat status;
  if (::fstat(file->get(), &status) != 0) return fail(sysError(Stage::state, "fstat", path, errno));
  FilePiece piece;
  piece.size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t left = piece.size > offset ? piece.size - offset : 0;
  piece.data.resize(std::min(left, max_bytes));
  std::size_t have = 0;
  while (have < piece.data.size()) {
    const ssize_t got =
        ::pread(file->get(), piece.data.data() + have, piece.data.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::state, "read", path, errno));
    if (got == 0) break;  // truncated meanwhile
    have += static_cast<std::size_t>(got);
  }
  piece.data.resize(have);
  return piece;
}

/// What a write needs to know about its target: directories are created, the mode of a replaced file is kept.
Result<mode_t> prepareWrite(const RootDir& root, std::string_view path, const WriteOptions& options) {
  const auto there = root.stat(path);
  if (there && there->type == FileType::directory) {
    return fail(sysError(Stage::state, "write", path, EISDIR, "name a file"));
  }
  if (options.make_directories) {
    const std::size_t slash = path.rfind('/');
    if (slash != std::string_view::npos && slash > 0) {
      if (auto made = root.makeDirs(path.substr(0, slash), kNewDirectoryMode); !made) return fail(made.error());
    }
  }
  const bool regular = there && there->type == FileType::regular;
  const mode_t mode = options.mode ? static_cast<mode_t>(*options.mode) : regular ? there->mode : kNewFileMode;
  return mode & kSafeBits;
}

FileEntry describeFile(std::string name, const sys::FileInfo& info) {
  return {std::move(name), std::string(sys::name(info.type)), info.size, static_cast<std::uint32_t>(info.mode),
          info.modified_ns / 1'000'000'000};
}

/// A name beside `path` that no program would guess.
std::string temporaryName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory(slash == std::string_view::npos ? "" : path.substr(0, slash + 1));
  return directory + ".caisson-" + newLayerName() + ".tmp";
}

Result<void> writeAll(int file, std::string_view path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(sysError(Stage::state, "write", path, errno));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

/// Whether the error means that the file's directory is not writable, so that only the file itself can be.
bool isShownAlone(const Error& error, const WriteOptions& options) {
  const int code = error.sys_errno;
  return options.reach == FileReach::sandbox && (code == EROFS || code == EACCES || code == EPERM);
}

bool mustWriteInPlace(const RootDir& root, std::string_view path, const WriteOptions& options) {
  return options.reach == FileReach::sandbox && isMountPoint(root, std::string(path));
}

Result<void> writeWhole(const RootDir& root, std::string_view path, std::string_view data,
                        const WriteOptions& options) {
  const auto mode = prepareWrite(root, path, options);
  if (!mode) return fail(mode.error());
  Result<void> written;
  const bool in_place = mustWriteInPlace(root, path, options);
  if (!in_place) written = root.writeFileAtomic(path, data, *mode);
  if (!in_place && (written || !isShownAlone(written.error(), options))) return written;
  auto file = root.openFile(path, {.flags = O_WRONLY | O_TRUNC});
  if (!file) return in_place ? fail(file.error()) : written;
  return writeAll(file->get(), path, data);
}

Result<std::vector<FileEntry>> listDirectory(const RootDir& root, std::string_view path,
                                             const std::function<void(int)>& opened) {
  auto directory = path.empty() || path == "." ? root.enter("") : root.enter(path);
  if (!directory) return fail(directory.error());
  if (opened) opened(directory->descriptor());
  auto entries = directory->list("", kMaxListed);
  if (!entries) return fail(entries.error());
  std::vector<FileEntry> result;
  result.reserve(entries->size());
  for (const sys::DirectoryEntry& entry : *entries) {
    const auto info = directory->stat(entry.name);
    if (!info) continue;  // removed meanwhile
    result.push_back(describeFile(entry.name, *info));
  }
  return result;
}

}  // namespace

std::string_view SessionContext::withoutLink(std::string_view path) const {
  const bool tier = inLandlockTier(metadata_.policy);  // there the workspace is a directory of the host
  const bool same_path = metadata_.policy.filesystem.workspace.same_path;
  if (!tier && (!same_path || policy::isWithin(path, metadata_.workspace))) return path;
  if (!policy::isWithin(path, plan::kWorkspace)) return path;
  path.remove_prefix(plan::kWorkspace.size());
  while (path.starts_with('/')) path.remove_prefix(1);
  return path.empty() ? "." : path;
}

Result<RootDir> SessionContext::workspace() {
  if (inLandlockTier(metadata_.policy)) {
    (void)extendByActivity(directory_, metadata_);
    auto root = openTierWorkspace(store_->paths(), metadata_);
    if (root) root->refuseLinksOut();
    return root;
  }
  auto connection = connect();
  if (!connection) return fail(connection.error());
  auto answer = (*connection)->ask(MessageType::workspace, {}, "open", id());
  if (!answer) return fail(answer.error());
  if (answer->descriptors.empty()) return fail(goneError("open", id()));
  return RootDir::adopt(std::move(answer->descriptors.front()), {.known_as = answer->value, .refuse_links_out = true});
}

void SessionContext::releaseFiles(const Result<void>& result) {
  if (connection_) (void)connection_->send(MessageType::release_workspace, {});
  if (!result && result.error().code == ErrorCode::path_escapes) {
    record_.pathRefused(id(), metadata_.policy, result.error());
  }
}

Result<void> SessionContext::useWorkspace(const std::function<Result<void>(const RootDir&)>& work) {
  auto root = workspace();
  if (!root) {  // the sandbox may have ended since the last request
    disconnect();
    root = workspace();
  }
  if (!root) return fail(root.error());
  auto result = work(*root);
  root = fail(goneError("open", id()));  // closed before it is released
  releaseFiles(result);
  return result;
}

template <class T>
Result<T> SessionContext::withWorkspace(const std::function<Result<T>(const RootDir&)>& work) {
  Result<T> result = fail(goneError("open", id()));
  auto used = useWorkspace([&](const RootDir& root) -> Result<void> {
    const AsPayload identity(metadata_.payload_id);
    result = work(root);
    if (!result) return fail(result.error());
    return {};
  });
  if (!used) return fail(used.error());
  return result;
}

Result<SandboxFiles> SessionContext::sandboxFiles() {
  auto connection = connect();
  if (!connection) return fail(connection.error());
  auto answer = (*connection)->ask(MessageType::view, {}, "open", id());
  if (!answer) return fail(answer.error());
  auto view = codec::decode<FileView>(answer->value);
  if (!view || answer->descriptors.empty()) return fail(goneError("open", id()));
  auto root = RootDir::adopt(std::move(answer->descriptors.front()), {.known_as = "/"});
  if (!root) return fail(root.error());
  sys::Fd rules = answer->descriptors.size() > 1 ? std::move(answer->descriptors[1]) : sys::Fd();
  return SandboxFiles{std::move(*root), std::move(rules), std::move(view->workspace)};
}

template <class T>
Result<T> SessionContext::withFiles(FileReach reach, std::string_view path,
                                    const std::function<Result<T>(const RootDir&, std::string_view)>& work) {
  if (reach == FileReach::workspace || inLandlockTier(metadata_.policy)) {
    return withWorkspace<T>([&](const RootDir& root) { return work(root, withoutLink(path)); });
  }
  auto files = sandboxFiles();
  if (!files) {  // the sandbox may have ended since the last request
    disconnect();
    files = sandboxFiles();
  }
  if (!files) return fail(files.error());
  Result<T> result = fail(goneError("open", id()));
  const auto used = [&]() -> Result<void> {
    const auto inside = pathInside(path, files->workspace);
    if (!inside) return fail(inside.error());
    return runWithCommandRights(files->rules, metadata_.payload_id, [&]() -> Result<void> {
      const auto target = followLinks(files->root, *inside);
      if (!target) return fail(target.error());
      if (auto checked = checkFileSystem(files->root, *target); !checked) return checked;
      result = work(files->root, *target);
      return result ? Result<void>() : Result<void>(fail(result.error()));
    });
  }();
  files = fail(goneError("open", id()));  // closed before it is released
  releaseFiles(used);
  if (!used) return fail(explainAccess(used.error()));
  return result;
}

Result<FilePiece> SessionContext::read(std::string_view path, std::uint64_t offset, std::uint64_t max_bytes,
                                       FileReach reach) {
  return withFiles<FilePiece>(reach, path, [&](const RootDir& root, std::string_view target) {
    return readPiece(root, target, offset, max_bytes);
  });
}

WriteRoom* SessionContext::room() {
  if (!metadata_.policy.filesystem.max_total_size) return nullptr;
  if (!room_) room_ = store_->writeRoom(id());
  return room_.get();
}

std::uint64_t SessionContext::measureRoom() const {
  const std::uint64_t quota = *metadata_.policy.filesystem.max_total_size;
  const LayerSize frozen = sizeOfFrozen(store_->paths(), metadata_);
  return quota - std::min(quota, frozen.bytes + sizeOfUpper(store_->paths(), metadata_).bytes);
}

Result<void> SessionContext::reserveRoom(std::uint64_t bytes, std::uint64_t unmeasured) {
  WriteRoom* shared = room();
  if (shared == nullptr || shared->reserve(bytes, unmeasured, [this] { return measureRoom(); })) return {};
  return fail(sysError(Stage::limits, "session write", id(), EDQUOT,
                       "the session has " + std::to_string(shared->left()) +
                           " bytes left (filesystem.max_total_size); remove something, or make one with more"));
}

void SessionContext::noteWritten(std::uint64_t bytes) {
  if (room_) room_->written(bytes);
}

void SessionContext::forgetRoom() {
  if (room_) room_->forget();
}

Result<void> SessionContext::write(std::string_view path, std::string_view data, const WriteOptions& options) {
  if (auto reserved = reserveRoom(data.size(), 1U << 20); !reserved) return reserved;
  auto written = withFiles<void>(options.reach, path, [&](const RootDir& root, std::string_view target) {
    return writeWhole(root, target, data, options);
  });
  noteWritten(data.size());
  return written;
}

Result<std::uint64_t> SessionContext::writeFrom(std::string_view path,
                                                const std::function<Result<std::size_t>(std::span<char>)>& read,
                                                const WriteOptions& options) {
  // Measured before: the sandbox's user cannot read the layers. Uploads at the same time share what is left.
  WriteRoom* const shared = room();
  const auto no_room = [&] {
    return fail(sysError(Stage::limits, "session write", id(), EDQUOT,
                         "the session's disk space is used up (filesystem.max_total_size)"));
  };
  if (shared != nullptr && shared->measure([this] { return measureRoom(); }) == 0) return no_room();
  const auto work = [&](const RootDir& root, std::string_view target) -> Result<std::uint64_t> {
    const auto mode = prepareWrite(root, target, options);
    if (!mode) return fail(mode.error());
    const std::string temporary = temporaryName(target);
    bool in_place = mustWriteInPlace(root, target, options);
    auto file = in_place ? root.openFile(target, {.flags = O_WRONLY | O_TRUNC})
                         : root.openFile(temporary, {.flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 0600});
    if (!file && !in_place && isShownAlone(file.error(), options)) {
      auto existing = root.openFile(target, {.flags = O_WRONLY | O_TRUNC});
      in_place = existing.has_value();
      if (existing) file = std::move(existing);
    }
    if (!file) return fail(file.error());
    std::vector<char> buffer(std::size_t{64} << 10U);
    std::uint64_t total = 0;
    const auto copy = [&]() -> Result<void> {
      for (;;) {
        const auto got = read(buffer);
        if (!got) return fail(got.error());
        if (*got == 0) break;
        if (shared != nullptr && !shared->take(*got)) return no_room();
        total += *got;
        auto wrote = writeAll(file->get(), target, {buffer.data(), *got});
        if (shared != nullptr) shared->written(*got);
        if (!wrote) return wrote;
      }
      if ((!in_place && ::fchmod(file->get(), *mode) != 0) || ::fsync(file->get()) != 0)
        return fail(sysError(Stage::state, "write", target, errno));
      forgetRoom();
      if (in_place) return {};
      return root.rename(temporary, target, true);
    };
    if (auto copied = copy(); !copied) {
      const auto remove = [&] { return root.remove(temporary).has_value(); };
      if (!in_place) shared != nullptr ? shared->giveBack(total, remove) : (void)remove();
      return fail(copied.error());
    }
    return total;
  };
  return withFiles<std::uint64_t>(options.reach, path, work);
}

Result<int> SessionContext::openFile(std::string_view path, FileReach reach) {
  return withFiles<int>(reach, path, [&](const RootDir& root, std::string_view target) -> Result<int> {
    auto file = root.openFile(target, {.flags = O_RDONLY});
    if (!file) return fail(file.error());
    return file->release();
  });
}

Result<FileEntry> SessionContext::statFile(std::string_view path, FileReach reach) {
  return withFiles<FileEntry>(reach, path, [&](const RootDir& root, std::string_view target) -> Result<FileEntry> {
    const auto info = root.stat(target);
    if (!info) return fail(info.error());
    return describeFile(std::string(target.substr(target.rfind('/') + 1)), *info);
  });
}

Result<PathAccess> SessionContext::pathAccess(std::string_view path) {
  if (inLandlockTier(metadata_.policy)) {
    return fail(plainError(Stage::state, "session", id(), "a session of the landlock tier has no root directory"));
  }
  const auto denies = [](const Error& error) { return error.sys_errno == EACCES || error.sys_errno == EPERM; };
  return withFiles<PathAccess>(FileReach::sandbox, path, [&](const RootDir& root, std::string_view target) {
    PathAccess access{.nearest = std::string(target)};
    const auto nearest = openNearest(root, access.nearest);
    access.denied = !nearest && denies(nearest.error());
    if (!nearest) return Result<PathAccess>(access);
    access.exists = nearest->path == target;
    access.nearest = nearest->path;
    struct statvfs mount{};
    access.read_only = ::fstatvfs(nearest->handle.get(), &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0;
    const auto opened =
        root.openFile(access.nearest, {.flags = O_RDONLY, .types = {FileType::regular, FileType::directory}});
    access.denied = !opened && denies(opened.error());
    return Result<PathAccess>(access);
  });
}

Result<void> SessionContext::makeDirectory(std::string_view path) {
  return withWorkspace<void>([&](const RootDir& root) { return root.makeDirs(withoutLink(path), kNewDirectoryMode); });
}

Result<void> SessionContext::moveFile(std::string_view from, std::string_view to, bool replace) {
  return withWorkspace<void>(
      [&](const RootDir& root) { return root.rename(withoutLink(from), withoutLink(to), replace); });
}

Result<void> SessionContext::removeFile(std::string_view path, bool recursive) {
  return withWorkspace<void>([&](const RootDir& root) -> Result<void> {
    const std::string_view target = withoutLink(path);
    if (const auto info = root.stat(target); !info) return fail(info.error());
    return recursive ? root.removeTree(target) : root.remove(target);
  });
}

Result<std::vector<FileEntry>> SessionContext::listFiles(std::string_view path, const std::function<void(int)>& opened,
                                                         FileReach reach) {
  return withFiles<std::vector<FileEntry>>(
      reach, path, [&](const RootDir& root, std::string_view target) { return listDirectory(root, target, opened); });
}

}  // namespace caisson::session
