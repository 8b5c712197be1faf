// Blobs from files and directories, and the documents of an image that is only a root file system.
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "base/json_writer.h"
#include "host/own_places.h"
#include "image_store/build/draft.h"
#include "image_store/import_sources.h"
#include "image_store/layer_writer.h"
#include "image_store/unpack_layer.h"

namespace caisson::image {
namespace {

constexpr std::size_t kCopyBytes = 1U << 20;

std::string writeConfig(const Platform& platform, const ContentDigest& diff_id, std::string_view origin) {
  const std::string created = buildTime();
  JsonWriter json;
  json.beginObject().key("created").string(created).key("architecture").string(platform.architecture);
  if (!platform.variant.empty()) json.key("variant").string(platform.variant);
  json.key("os").string(platform.os).key("config").beginObject().end();
  json.key("rootfs")
      .beginObject()
      .key("type")
      .string("layers")
      .key("diff_ids")
      .beginArray()
      .string(diff_id.text())
      .end()
      .end();
  json.key("history").beginArray().beginObject().key("created").string(created);
  json.key("created_by")
      .string("caisson image import")
      .key("comment")
      .string("imported from " + std::string(origin))
      .end()
      .end();
  return json.end().text();
}

void writeDescriptor(JsonWriter& json, const Descriptor& descriptor) {
  json.beginObject().key("mediaType").string(descriptor.media_type).key("size").number(descriptor.size);
  json.key("digest").string(descriptor.digest.text()).end();
}

struct FreeArchive {
  void operator()(archive* one) const { archive_free(one); }
};
struct FreeEntry {
  void operator()(archive_entry* one) const { archive_entry_free(one); }
};
struct FreeLinks {
  void operator()(archive_entry_linkresolver* one) const { archive_entry_linkresolver_free(one); }
};
using ArchivePtr = std::unique_ptr<archive, FreeArchive>;

/// Where libarchive writes to.
struct TarTarget {
  std::function<Result<void>(std::string_view)> sink;
  std::optional<Error> error;

  static la_ssize_t write(archive*, void* self, const void* data, std::size_t size) {
    auto* target = static_cast<TarTarget*>(self);
    auto written = target->sink({static_cast<const char*>(data), size});
    if (written) return static_cast<la_ssize_t>(size);
    target->error = written.error();
    return -1;
  }
};

Error tarError(archive* from, std::string_view object) {
  const char* text = archive_error_string(from);
  return plainError(Stage::state, "import", object, text == nullptr ? "cannot be archived" : text);
}

/// Caisson's state, whose keys no sandbox may see. Not that of images, which is made to be shown.
class OwnState {
 public:
  OwnState() {
    for (const std::string& path : host::findOwnPlaces().states) {
      note(path, state_);
      note(path + "/images", images_);
    }
  }
  [[nodiscard]] bool is(const struct stat& directory) const { return state_.contains(keyOf(directory)); }
  /// Whether the directory is, or lies in, the state.
  [[nodiscard]] bool holds(int directory) const {
    sys::Fd here(::openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat status{};
    for (Key last{}; here && ::fstat(here.get(), &status) == 0 && keyOf(status) != last;) {  // "/" is above itself
      if (is(status)) return !images_.contains(last);
      last = keyOf(status);
      here = sys::Fd(::openat(here.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    return false;
  }

 private:
  using Key = std::pair<dev_t, ino_t>;
  static Key keyOf(const struct stat& status) { return {status.st_dev, status.st_ino}; }
  static void note(const std::string& path, std::set<Key>& keys) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) keys.insert(keyOf(status));
  }
  std::set<Key> state_, images_;
};

Error ownStateError(const std::string& path) {
  return plainError(Stage::usage, "import", path, "it holds caisson's own state, which no sandbox may see",
                    "import a directory without it");
}

/// Writes the files below a directory into a tar archive, sorted, so that equal trees give equal archives. By
/// descriptors, never by path: a payload that can write there may exchange a directory for a link meanwhile.
class TreeArchiver {
 public:
  explicit TreeArchiver(archive* tar) : tar_(tar), links_(archive_entry_linkresolver_new()) {
    archive_entry_linkresolver_set_strategy(links_.get(), ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
  }

  /// `above`: the path of the directory with a slash, or empty.
  Result<void> contents(int parent, const std::string& name, const std::string& above, std::size_t depth) {
    const LayerLimits limits;
    const sys::Fd here(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!here || ::fstat(here.get(), &status) != 0) return fail(sysError(Stage::state, "open", above, errno));
    if (depth == 0) device_ = status.st_dev;
    if (depth == 0 ? own_state_.holds(here.get()) : own_state_.is(status)) return fail(ownStateError(above));
    if (status.st_dev != device_) return {};  // another mount
    if (depth > limits.depth) return fail(plainError(Stage::state, "import", above, "nested too deeply"));
    const auto names = list(here.get(), above);
    if (!names) return fail(names.error());
    count_ += names->size();
    if (count_ > limits.entries) return fail(plainError(Stage::state, "import", above, "too many files"));
    for (const std::string& child : *names)
      if (auto added = add(here.get(), child, above + child, depth); !added) return added;
    return {};
  }

 private:
  static Result<std::vector<std::string>> list(int directory, const std::string& path) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(::fcntl(directory, F_DUPFD_CLOEXEC, 3)), ::closedir);
    if (!listing) return fail(sysError(Stage::state, "read", path, errno));
    while (const dirent* item = ::readdir(listing.get())) {
      const std::string_view name = item->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      if (names.size() > LayerLimits{}.entries) return fail(plainError(Stage::state, "import", path, "too many files"));
    }
    std::ranges::sort(names);
    return names;
  }

  Result<void> add(int parent, const std::string& name, const std::string& path, std::size_t depth) {
    struct stat status{};
    if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return fail(sysError(Stage::state, "stat", path, errno));
    if (S_ISSOCK(status.st_mode)) return {};  // has no form in an archive
    sys::Fd file;
    if (S_ISREG(status.st_mode)) {
      file = sys::Fd(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
      if (!file || ::fstat(file.get(), &status) != 0) return fail(sysError(Stage::state, "open", path, errno));
      if (!S_ISREG(status.st_mode)) return {};  // replaced meanwhile
    }
    std::string target;
    if (S_ISLNK(status.st_mode)) {
      target.resize(4096);
      const ssize_t length = ::readlinkat(parent, name.c_str(), target.data(), target.size());
      if (length < 0) return fail(sysError(Stage::state, "readlink", path, errno));
      target.resize(static_cast<std::size_t>(length));
    }
    if (auto written = header(path, status, target); !written) return fail(written.error());
    if (S_ISDIR(status.st_mode)) return contents(parent, name, path + "/", depth + 1);
    return file && with_data_ ? data(path, file.get(), static_cast<std::uint64_t>(status.st_size)) : Result<void>{};
  }

  Result<void> header(const std::string& path, const struct stat& status, const std::string& target) {
    archive_entry* entry = archive_entry_new();
    archive_entry_copy_stat(entry, &status);
    archive_entry_set_pathname(entry, path.c_str());
    if (!target.empty()) archive_entry_set_symlink(entry, target.c_str());
    archive_entry* spare = nullptr;
    archive_entry_linkify(links_.get(), &entry, &spare);
    const std::unique_ptr<archive_entry, FreeEntry> owner(entry);
    archive_entry_set_uid(entry, 0);
    archive_entry_set_gid(entry, 0);
    archive_entry_unset_atime(entry);
    archive_entry_unset_ctime(entry);
    archive_entry_unset_birthtime(entry);
    archive_entry_set_mtime(entry, archive_entry_mtime(entry), 0);
    with_data_ = archive_entry_size(entry) > 0;  // not for a second name of a file
    return archive_write_header(tar_, entry) == ARCHIVE_OK ? Result<void>{} : fail(tarError(tar_, path));
  }

  /// At most `size` bytes: the file may grow.
  Result<void> data(const std::string& path, int file, std::uint64_t size) {
    std::vector<char> buffer(256U << 10);
    while (size > 0) {
      const ssize_t got = ::read(file, buffer.data(), std::min<std::uint64_t>(buffer.size(), size));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(sysError(Stage::state, "read", path, errno));
      if (got == 0) return fail(plainError(Stage::state, "import", path, "the file changed while it was read"));
      if (archive_write_data(tar_, buffer.data(), static_cast<std::size_t>(got)) < 0) return fail(tarError(tar_, path));
      size -= static_cast<std::uint64_t>(got);
    }
    return {};
  }

  const OwnState own_state_;
  archive* tar_;
  const std::unique_ptr<archive_entry_linkresolver, FreeLinks> links_;
  dev_t device_ = 0;
  std::uint64_t count_ = 0;
  bool with_data_ = false;  ///< of the last header
};

}  // namespace

std::string writeManifest(const Descriptor& config, const std::vector<Descriptor>& layers, bool docker) {
  JsonWriter json;
  json.beginObject().key("schemaVersion").number(2).key("mediaType").string(docker ? kDockerManifest : kOciManifest);
  json.key("config");
  writeDescriptor(json, config);
  json.key("layers").beginArray();
  for (const Descriptor& layer : layers) writeDescriptor(json, layer);
  return json.end().end().text();
}

Result<ContentDigest> addFile(Transaction& transaction, int file, const std::optional<ContentDigest>& expected,
                              const std::string& title, Progress& progress) {
  auto blob = transaction.newBlob();
  if (!blob) return fail(blob.error());
  std::vector<char> buffer(kCopyBytes);
  const std::size_t step = progress.begin(title, 0);
  while (true) {
    const ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::state, "read", title, errno));
    if (got == 0) break;
    if (auto written = blob->write({buffer.data(), static_cast<std::size_t>(got)}); !written)
      return fail(written.error());
    progress.advance(step, blob->size());
  }
  progress.end(step, readableSize(blob->size()));
  return transaction.add(std::move(*blob), expected);
}

Result<void> addLayoutBlob(Transaction& transaction, const sys::RootDir& layout, const Descriptor& wanted,
                           Progress& progress) {
  const auto file = layout.openFile(blobPath(wanted.digest), {});
  if (!file) return fail(file.error());
  const auto added =
      addFile(transaction, file->get(), wanted.digest, wanted.digest.hex().substr(0, 12) + ": copying", progress);
  return added ? Result<void>{} : fail(added.error());
}

Result<ContentDigest> addDirectory(Transaction& transaction, const sys::RootDir& directory, Progress& progress) {
  auto blob = transaction.newBlob();
  if (!blob) return fail(blob.error());
  const std::size_t step = progress.begin("reading " + directory.knownAs(), 0);
  TarTarget target{[&](std::string_view bytes) {
                     auto written = blob->write(bytes);
                     progress.advance(step, blob->size());
                     return written;
                   },
                   std::nullopt};
  const ArchivePtr tar(archive_write_new());
  archive_write_set_format_pax_restricted(tar.get());
  archive_write_set_options(tar.get(), "hdrcharset=BINARY");
  if (archive_write_open(tar.get(), &target, nullptr, TarTarget::write, nullptr) != ARCHIVE_OK)
    return fail(tarError(tar.get(), directory.knownAs()));
  auto done = TreeArchiver(tar.get()).contents(directory.descriptor(), ".", "", 0);
  if (done && archive_write_close(tar.get()) != ARCHIVE_OK) done = fail(tarError(tar.get(), directory.knownAs()));
  if (!done) return fail(target.error.value_or(done.error()));
  progress.end(step, readableSize(blob->size()));
  return transaction.add(std::move(*blob));
}

Result<ContentDigest> wrapLayer(Transaction& transaction, const ContentDigest& layer, const Platform& platform,
                                std::string_view origin, UnpackReport& report, Progress& progress) {
  const auto diff_id = unpackLayer(transaction, layer, {}, report, progress);
  if (!diff_id) return diff_id;
  const std::string config = writeConfig(platform, *diff_id, origin);
  const auto config_digest = transaction.addText(config);
  if (!config_digest) return config_digest;
  const auto file = transaction.openBlob(layer);
  if (!file) return fail(file.error());
  unsigned char magic[2] = {};
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  if (::pread(file->get(), magic, sizeof(magic), 0) < 0 || size < 0)
    return fail(sysError(Stage::state, "read", layer.text(), errno));
  std::string type(kOciLayer);
  if (magic[0] == 0x1f && magic[1] == 0x8b) type += "+gzip";
  if (magic[0] == 0x28 && magic[1] == 0xb5) type += "+zstd";
  return transaction.addText(
      writeManifest({.media_type = std::string(kOciConfig), .digest = *config_digest, .size = config.size()},
                    {{.media_type = type, .digest = layer, .size = static_cast<std::uint64_t>(size)}}, false));
}

}  // namespace caisson::image
