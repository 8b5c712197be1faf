#include "image_store/layer_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "image/layout.h"
#include "sys/root_dir_resolve.h"

namespace caisson::image {
namespace {

constexpr std::string_view kWhiteoutPrefix = ".wh.";
constexpr std::string_view kOpaqueMarker = ".wh..wh..opq";
constexpr std::string_view kAufsPrefix = ".wh..wh.";
constexpr std::size_t kMaxComponent = 255;
constexpr std::size_t kMaxTarget = 4095;
constexpr std::size_t kMaxDetail = 300;
constexpr std::uint64_t kEntrySlack = 64ULL << 20;

timespec timeOf(std::int64_t seconds) {
  return {.tv_sec = static_cast<time_t>(std::clamp<std::int64_t>(seconds, 0, 1LL << 33)), .tv_nsec = 0};
}

/// Whether a link's text climbs above the root, counted from the directory that has it.
bool climbs(std::string_view directory, std::string_view target) {
  auto depth = static_cast<std::ptrdiff_t>(target.starts_with('/') ? 0 : split(directory, '/').size());
  for (const std::string_view part : split(target, '/')) {
    if (part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

std::string_view typeName(EntryKind kind) {
  switch (kind) {
    case EntryKind::character: return "character device left out";
    case EntryKind::block: return "block device left out";
    case EntryKind::fifo: return "FIFO left out";
    case EntryKind::socket: return "socket left out";
    default: return "entry of unknown type left out";
  }
}

}  // namespace

Error LayerWriter::refusal(std::string_view reason) const {
  return plainError(Stage::state, "unpack", printable(entry_.name, 300), reason, "the archive is damaged or hostile");
}

Error LayerWriter::failure(std::string_view call) const {
  return sysError(Stage::state, call, printable(path_, 300), errno);
}

Result<std::string> LayerWriter::checkName(std::string_view name, std::string_view what) {
  if (name.find('\0') != std::string_view::npos) return fail(refusal(std::string(what) + " contains a NUL byte"));
  if (name.size() > limits_.name) return fail(refusal(std::string(what) + " is too long"));
  std::string result;
  std::size_t depth = 0;
  for (const std::string_view part : split(name, '/')) {
    if (part == ".") continue;
    if (part == "..") return fail(refusal(std::string(what) + " contains `..`"));
    if (part.size() > kMaxComponent) return fail(refusal("a component of " + std::string(what) + " is too long"));
    if (++depth > limits_.depth) return fail(refusal(std::string(what) + " is nested too deeply"));
    result.append(result.empty() ? "" : "/").append(part);
  }
  return result;
}

Result<int> LayerWriter::directoryFor(const std::string& path) {
  if (path == cached_path_) return cached_.get();
  auto directory = sys::resolveDirectory(root_.descriptor(), path, {});
  if (!directory && directory.error() == ENOENT) {
    // A name of 128 components would otherwise count as one entry and make 127 directories.
    std::vector<std::string> missing;
    for (std::string above = path; !above.empty() && !sys::resolveDirectory(root_.descriptor(), above, {});) {
      ++implied_;
      missing.push_back(above);
      const std::size_t slash = above.rfind('/');
      above.resize(slash == std::string::npos ? 0 : slash);
    }
    if (implied_ > limits_.entries - entries_) return fail(refusal("the archive has too many directories"));
    // A link whose target does not exist inside, wherever it leads outside.
    if (auto made = root_.makeDirs(path, 0755); !made) {
      return fail(made.error().sys_errno == ENOTDIR ? refusal("a link in its path leads to no directory of the layer")
                                                    : made.error());
    }
    // A new directory may have the inode number of a file that a later entry replaced.
    for (const std::string& made : missing) {
      struct stat status{};
      const auto one = sys::resolveDirectory(root_.descriptor(), made, {});
      if (one && ::fstat(one->get(), &status) == 0) originals_.erase(status.st_ino);
    }
    directory = sys::resolveDirectory(root_.descriptor(), path, {});
  }
  if (!directory && directory.error() == ELOOP) return fail(refusal("the links in its path form a loop"));
  if (!directory && directory.error() == ENOTDIR) return fail(refusal("a file is in place of a directory of its path"));
  if (!directory) {
    return fail(sysError(Stage::state, "unpack", printable(entry_.name, 300), directory.error(),
                         "a directory of this name is expected in the archive"));
  }
  cached_ = std::move(*directory);
  cached_path_ = path;
  return cached_.get();
}

/// Removes what is in the way of an entry; later entries of an archive replace earlier ones.
Result<void> LayerWriter::makeRoom(int parent, const std::string& name, bool for_directory, bool& exists) {
  exists = false;
  const auto info = sys::inspect(parent, name.c_str());
  if (!info) return info.error() == ENOENT ? Result<void>{} : fail(sysError(Stage::state, "stat", path_, info.error()));
  exists = S_ISDIR(info->stx_mode) && for_directory;
  if (exists) return {};
  report_.add("duplicate entry: the last one counts", entry_.name);
  cached_path_ = "\n";
  if (!S_ISDIR(info->stx_mode)) {
    return ::unlinkat(parent, name.c_str(), 0) == 0 ? Result<void>{} : fail(failure("unlink"));
  }
  sys::Fd copy(::fcntl(parent, F_DUPFD_CLOEXEC, 3));
  const auto directory = sys::RootDir::adopt(std::move(copy), {.known_as = "layer"});
  return directory ? directory->removeTree(name) : fail(directory.error());
}

Result<ino_t> LayerWriter::remember(int parent, const std::string& name) {
  struct stat status{};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return fail(failure("stat"));
  originals_[status.st_ino] = {.mode = entry_.mode, .uid = entry_.uid, .gid = entry_.gid};
  return status.st_ino;
}

Result<void> LayerWriter::makeDirectory(int parent, const std::string& name) {
  bool exists = false;
  if (auto room = makeRoom(parent, name, true, exists); !room) return room;
  if (!exists && ::mkdirat(parent, name.c_str(), 0700) != 0) return fail(failure("mkdir"));
  const sys::Fd directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // The owner can always read and remove it; the record keeps the original mode.
  if (!directory || ::fchmod(directory.get(), (entry_.mode & 01777) | 0700) != 0) return fail(failure("chmod"));
  directory_times_.emplace_back(path_, entry_.mtime);
  if (auto known = remember(parent, name); !known) return fail(known.error());
  return {};
}

Result<void> LayerWriter::makeFile(int parent, const std::string& name) {
  bool exists = false;
  if (entry_.size > limits_.bytes - bytes_ - text_)
    return fail(refusal("the files of the layer exceed the size limit"));
  if (auto room = makeRoom(parent, name, false, exists); !room) return room;
  file_ = sys::Fd(::openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) return fail(failure("create"));
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) return fail(failure("stat"));
  inode_ = status.st_ino;
  hash_ = Sha256();
  written_ = 0;
  return {};
}

Result<void> LayerWriter::makeLink(int parent, const std::string& name) {
  bool exists = false;
  if (entry_.target.empty() || entry_.target.size() > kMaxTarget || entry_.target.find('\0') != std::string::npos) {
    return fail(refusal("the target of the link is empty or too long"));
  }
  if (climbs(path_.substr(0, path_.rfind('/') == std::string::npos ? 0 : path_.rfind('/')), entry_.target)) {
    report_.add("link that climbs above the root: ends at the root inside", entry_.name);
  }
  if (auto room = makeRoom(parent, name, false, exists); !room) return room;
  if (::symlinkat(entry_.target.c_str(), parent, name.c_str()) != 0) return fail(failure("symlink"));
  const timespec times[] = {timeOf(entry_.mtime), timeOf(entry_.mtime)};
  ::utimensat(parent, name.c_str(), times, AT_SYMLINK_NOFOLLOW);
  if (auto known = remember(parent, name); !known) return fail(known.error());
  return {};
}

Result<void> LayerWriter::makeHardLink(int parent, const std::string& name) {
  auto target = checkName(entry_.target, "the target of a hard link");
  if (!target) return fail(target.error());
  if (*target == path_) return {};
  const std::size_t slash = target->rfind('/');
  const std::string last = slash == std::string::npos ? *target : target->substr(slash + 1);
  const std::string directory = slash == std::string::npos ? "" : target->substr(0, slash);
  const auto from = sys::resolveDirectory(root_.descriptor(), directory, {});
  const auto info = from ? sys::inspect(from->get(), last.c_str()) : std::unexpected(from.error());
  if (last.empty() || !info || S_ISDIR(info->stx_mode)) {
    return fail(refusal("hard link to " + printable(entry_.target, 300) + ", which is not a file of this layer"));
  }
  const auto here = sys::inspect(parent, name.c_str());
  if (here && sys::sameObject(*here, *info)) return {};
  bool exists = false;
  if (auto room = makeRoom(parent, name, false, exists); !room) return room;
  if (::linkat(from->get(), last.c_str(), parent, name.c_str(), 0) != 0) return fail(failure("link"));
  return {};
}

Result<void> LayerWriter::noteWhiteout(const std::string& directory, const std::string& name) {
  if (name == kOpaqueMarker) {
    whiteouts_.push_back({directory, ""});
    return {};
  }
  if (name.starts_with(kAufsPrefix)) {
    report_.add("aufs metadata left out", entry_.name);
    return {};
  }
  const std::string hidden = name.substr(kWhiteoutPrefix.size());
  if (hidden.empty() || hidden == "." || hidden == "..") return fail(refusal("invalid whiteout"));
  whiteouts_.push_back({directory, hidden});
  return {};
}

Result<void> LayerWriter::countEntry(const ArchiveEntry& entry) {
  if (entries() >= limits_.entries) return fail(refusal("the archive has too many entries"));
  ++entries_;
  // unpackLayer() counts exactly, at the end; until then many small files must not fill the disk.
  if (entries() * kEntryBytes > limits_.bytes + kEntrySlack)
    return fail(refusal("the files of the layer take more than the quota leaves"));
  const std::uint64_t text = entry.name.size() + entry.target.size() + entry.attributes.size();
  if (text > limits_.text - text_) {
    return fail(refusal("the names, link targets and attributes of the layer take more than " +
                        std::to_string(limits_.text >> 20U) + " MiB"));
  }
  if (text > limits_.bytes - bytes_ - text_) return fail(refusal("the names of the layer exceed the size limit"));
  text_ += text;
  return {};
}

Result<void> LayerWriter::begin(const ArchiveEntry& entry) {
  if (file_) return fail(refusal("the entry is incomplete"));
  entry_ = entry;
  if (auto counted = countEntry(entry); !counted) return counted;
  auto path = checkName(entry.name, "the name");
  if (!path) return fail(path.error());
  path_ = *path;
  if (entry.name.starts_with('/')) report_.add("absolute name made relative", entry.name);
  if (path_.empty() && entry.kind != EntryKind::directory) return fail(refusal("the entry has no name"));
  if (path_.empty()) return {};
  const std::size_t slash = path_.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path_.substr(0, slash);
  const std::string name = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  for (const std::string_view part : split(directory, '/'))
    if (part.starts_with(kWhiteoutPrefix)) return fail(refusal("an entry below a whiteout"));
  if (name.starts_with(kWhiteoutPrefix)) return noteWhiteout(directory, name);
  if (entry.kind >= EntryKind::character) {
    report_.add(typeName(entry.kind), entry.name);
    return {};
  }
  if (!entry.attributes.empty()) {
    report_.add("extended attributes removed", entry.name, printable(entry.attributes, kMaxDetail));
  }
  if ((entry.mode & S_ISUID) != 0) report_.add("setuid bit removed", entry.name);
  if ((entry.mode & S_ISGID) != 0) report_.add("setgid bit removed", entry.name);
  const auto parent = directoryFor(directory);
  if (!parent) return fail(parent.error());
  switch (entry.kind) {
    case EntryKind::directory: return makeDirectory(*parent, name);
    case EntryKind::link: return makeLink(*parent, name);
    case EntryKind::hard_link: return makeHardLink(*parent, name);
    default: return makeFile(*parent, name);
  }
}

Result<void> LayerWriter::data(std::uint64_t offset, std::string_view bytes) {
  if (!file_) return {};  // of an entry that was left out
  if (offset < written_ || offset + bytes.size() > entry_.size || offset + bytes.size() < offset) {
    return fail(refusal("the data does not match the size of the entry"));
  }
  static constexpr std::array<char, 65536> kZeros{};
  for (; written_ < offset; written_ += std::min<std::uint64_t>(kZeros.size(), offset - written_)) {
    hash_.add(kZeros.data(), std::min<std::uint64_t>(kZeros.size(), offset - written_));
  }
  hash_.add(bytes);
  written_ = offset + bytes.size();
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(failure("write"));
    offset += static_cast<std::uint64_t>(wrote);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<void> LayerWriter::end() {
  if (!file_) return {};
  bytes_ += entry_.size;
  if (written_ != entry_.size) {
    if (::ftruncate(file_.get(), static_cast<off_t>(entry_.size)) != 0) return fail(failure("truncate"));
    // A hole at the end: hashed as zeros.
    static constexpr std::array<char, 65536> kZeros{};
    while (written_ < entry_.size) {
      const std::uint64_t count = std::min<std::uint64_t>(kZeros.size(), entry_.size - written_);
      hash_.add(kZeros.data(), count);
      written_ += count;
    }
  }
  if (::fchmod(file_.get(), (entry_.mode & 0777) | 0400) != 0) return fail(failure("chmod"));
  const timespec times[] = {timeOf(entry_.mtime), timeOf(entry_.mtime)};
  ::futimens(file_.get(), times);
  originals_[inode_] = {.mode = entry_.mode, .uid = entry_.uid, .gid = entry_.gid, .digest = hash_.finish()};
  file_.reset();
  return {};
}

/// A whiteout hides entries of lower layers only: what this layer adds under the same name stays.
Result<void> LayerWriter::applyWhiteout(const Whiteout& whiteout) {
  auto parent = directoryFor(whiteout.directory);
  if (!parent) return fail(parent.error());
  sys::Fd opaque;
  if (whiteout.name.empty()) {
    opaque = sys::Fd(::openat(*parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  } else {
    const auto info = sys::inspect(*parent, whiteout.name.c_str());
    if (!info && ::mknodat(*parent, whiteout.name.c_str(), S_IFCHR, makedev(0, 0)) != 0) return fail(failure("mknod"));
    if (!info || !S_ISDIR(info->stx_mode)) return {};
    opaque = sys::Fd(::openat(*parent, whiteout.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!opaque || ::fsetxattr(opaque.get(), "user.overlay.opaque", "y", 1, 0) != 0) return fail(failure("setxattr"));
  return {};
}

Result<void> LayerWriter::finish() {
  if (file_) return fail(refusal("the entry is incomplete"));
  for (const Whiteout& whiteout : whiteouts_) {
    path_ = whiteout.directory + "/" + whiteout.name;
    if (auto applied = applyWhiteout(whiteout); !applied) return applied;
  }
  whiteouts_ = {};
  for (auto at = directory_times_.rbegin(); at != directory_times_.rend(); ++at) {
    const auto directory = sys::resolveDirectory(root_.descriptor(), at->first, {});
    if (!directory) continue;  // replaced by a later entry
    const timespec times[] = {timeOf(at->second), timeOf(at->second)};
    const sys::Fd open(::openat(directory->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (open) ::futimens(open.get(), times);
  }
  directory_times_ = {};
  return {};
}

}  // namespace caisson::image
