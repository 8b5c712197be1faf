#include "image_store/build/layer_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/text.h"
#include "image_store/layer_writer.h"

namespace caisson::image {
namespace {

constexpr std::size_t kMaxDepth = 120;

struct EntryDeleter {
  void operator()(archive_entry* one) const { archive_entry_free(one); }
};
using EntryPtr = std::unique_ptr<archive_entry, EntryDeleter>;

EntryPtr newEntry(const std::string& path, unsigned type, std::uint32_t mode, std::int64_t mtime) {
  EntryPtr entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), path.c_str());
  archive_entry_set_filetype(entry.get(), type);
  archive_entry_set_perm(entry.get(), static_cast<__LA_MODE_T>(mode & 01777));
  archive_entry_set_mtime(entry.get(), mtime, 0);
  archive_entry_set_size(entry.get(), 0);
  return entry;
}

struct WriteTarget {
  static la_ssize_t write(archive*, void* self, const void* data, std::size_t size) {
    auto* target = static_cast<std::pair<StagedBlob*, std::optional<Error>*>*>(self);
    auto written = target->first->write({static_cast<const char*>(data), size});
    if (written) return static_cast<la_ssize_t>(size);
    *target->second = written.error();
    return -1;
  }
  static int close(archive*, void* self) {
    delete static_cast<std::pair<StagedBlob*, std::optional<Error>*>*>(self);
    return ARCHIVE_OK;
  }
};

bool marksOpaque(int directory) {
  char value = 0;
  return ::fgetxattr(directory, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

}  // namespace

LayerArchive::LayerArchive(Transaction& transaction, StagedBlob blob)
    : transaction_(transaction),
      blob_(std::move(blob)),
      archive_(archive_write_new()),
      newest_(std::numeric_limits<std::int64_t>::max()) {
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0')
    newest_ = std::atoll(epoch);
  archive_write_set_format_pax_restricted(archive_);
  archive_write_set_options(archive_, "hdrcharset=BINARY");
  archive_write_open(archive_, new std::pair<StagedBlob*, std::optional<Error>*>(&blob_, &error_), nullptr,
                     WriteTarget::write, WriteTarget::close);
}

LayerArchive::~LayerArchive() { archive_write_free(archive_); }

Result<std::unique_ptr<LayerArchive>> LayerArchive::begin(Transaction& transaction) {
  auto blob = transaction.newBlob();
  if (!blob) return fail(blob.error());
  return std::unique_ptr<LayerArchive>(new LayerArchive(transaction, std::move(*blob)));
}

Error LayerArchive::failure(const std::string& path) const {
  if (error_) return *error_;
  const char* text = archive_error_string(archive_);
  return plainError(Stage::state, "build", printable(path, 300), text == nullptr ? "cannot be archived" : text);
}

/// The same limits as for layers of strangers: a layer beyond them could not be unpacked.
Error LayerArchive::tooLarge() {
  const LayerLimits limits;
  return plainError(Stage::state, "build", "layer",
                    "more than " + std::to_string(limits.entries) + " files, or paths of more than " +
                        std::to_string(limits.text >> 20U) + " MiB");
}

Result<void> LayerArchive::header(archive_entry* entry, const std::string& path) {
  ++entries_;
  text_ += path.size();
  if (path.size() > LayerLimits{}.name)
    return fail(plainError(Stage::state, "build", printable(path, 300), "the path is too long"));
  if (text_ > LayerLimits{}.text) return fail(tooLarge());
  return archive_write_header(archive_, entry) == ARCHIVE_OK ? Result<void>{} : fail(failure(path));
}

Result<void> LayerArchive::directory(const std::string& path, std::uint32_t mode, std::int64_t mtime) {
  if (path.empty() || !directories_.insert(path).second) return {};
  return header(newEntry(path + "/", AE_IFDIR, mode, std::min(mtime, newest_)).get(), path);
}

Result<void> LayerArchive::file(const std::string& path, std::uint32_t mode, std::int64_t mtime, int descriptor,
                                std::uint64_t size) {
  const EntryPtr entry = newEntry(path, AE_IFREG, mode, std::min(mtime, newest_));
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
  if (auto begun = header(entry.get(), path); !begun) return begun;
  std::vector<char> buffer(256U << 10);
  while (size > 0) {
    const ssize_t got = ::read(descriptor, buffer.data(), std::min<std::uint64_t>(buffer.size(), size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return fail(plainError(Stage::state, "build", printable(path, 300), "the file changed while it was read"));
    if (archive_write_data(archive_, buffer.data(), static_cast<std::size_t>(got)) < 0) return fail(failure(path));
    size -= static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> LayerArchive::text(const std::string& path, std::uint32_t mode, std::string_view data) {
  const EntryPtr entry = newEntry(path, AE_IFREG, mode, std::min<std::int64_t>(0, newest_));
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(data.size()));
  if (auto begun = header(entry.get(), path); !begun) return begun;
  return archive_write_data(archive_, data.data(), data.size()) >= 0 ? Result<void>{} : fail(failure(path));
}

Result<void> LayerArchive::link(const std::string& path, const std::string& target, std::int64_t mtime) {
  const EntryPtr entry = newEntry(path, AE_IFLNK, 0777, std::min(mtime, newest_));
  archive_entry_set_symlink(entry.get(), target.c_str());
  return header(entry.get(), path);
}

Result<void> LayerArchive::hardLink(const std::string& path, const std::string& target) {
  const EntryPtr entry = newEntry(path, AE_IFREG, 0644, 0);
  archive_entry_set_hardlink(entry.get(), target.c_str());
  return header(entry.get(), path);
}

Result<void> LayerArchive::upperEntry(int parent, const std::string& name, const std::string& path, std::size_t depth) {
  struct stat status{};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return fail(sysError(Stage::state, "stat", path, errno));
  const std::string above = path.substr(0, path.size() - name.size());
  if (name.starts_with(".wh.")) return {};  // an archive would take it for a whiteout
  if (S_ISCHR(status.st_mode) && status.st_rdev == 0) return text(above + ".wh." + name, 0644, "");
  if (S_ISDIR(status.st_mode)) {
    if (auto added = directory(path, status.st_mode & 01777, status.st_mtim.tv_sec); !added) return added;
    return walk(parent, name, path, depth + 1);
  }
  if (S_ISLNK(status.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t length = ::readlinkat(parent, name.c_str(), target.data(), target.size());
    if (length < 0) return fail(sysError(Stage::state, "readlink", path, errno));
    target.resize(static_cast<std::size_t>(length));
    return link(path, target, status.st_mtim.tv_sec);
  }
  if (!S_ISREG(status.st_mode)) return {};
  if (status.st_nlink > 1) {
    const auto [known, inserted] = linked_.emplace(status.st_ino, path);
    if (!inserted) return hardLink(path, known->second);
  }
  const sys::Fd open(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat opened{};
  if (!open || ::fstat(open.get(), &opened) != 0) return fail(sysError(Stage::state, "open", path, errno));
  if (!S_ISREG(opened.st_mode)) return {};  // replaced meanwhile
  return file(path, opened.st_mode & 0777, opened.st_mtim.tv_sec, open.get(),
              static_cast<std::uint64_t>(opened.st_size));
}

Result<void> LayerArchive::walk(int parent, const std::string& name, const std::string& path, std::size_t depth) {
  if (depth > kMaxDepth) return fail(plainError(Stage::state, "build", printable(path, 300), "nested too deeply"));
  const sys::Fd here(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!here) return fail(sysError(Stage::state, "open", path, errno));
  if (!path.empty() && marksOpaque(here.get())) {
    if (auto marked = text(path + "/.wh..wh..opq", 0644, ""); !marked) return marked;
  }
  std::vector<std::string> names;
  {
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(::fcntl(here.get(), F_DUPFD_CLOEXEC, 3)), ::closedir);
    if (!list) return fail(sysError(Stage::state, "read", path, errno));
    while (const dirent* item = ::readdir(list.get())) {
      const std::string_view one = item->d_name;
      if (one == "." || one == "..") continue;
      names.emplace_back(one);
      listed_ += one.size();
      if (++found_ > LayerLimits{}.entries || listed_ > LayerLimits{}.text) return fail(tooLarge());
    }
  }
  std::ranges::sort(names);
  for (const std::string& child : names)
    if (auto added = upperEntry(here.get(), child, path.empty() ? child : path + "/" + child, depth); !added)
      return added;
  return {};
}

Result<void> LayerArchive::upperDirectory(const sys::RootDir& upper) { return walk(upper.descriptor(), ".", "", 0); }

Result<ContentDigest> LayerArchive::finish() {
  if (archive_write_close(archive_) != ARCHIVE_OK) return fail(failure("archive"));
  return transaction_.add(std::move(blob_));
}

}  // namespace caisson::image
