// Blobs from files and directories, and the documents of an image that is only a root file system.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/json_writer.h"
#include "image_store/build/draft.h"
#include "image_store/import_sources.h"
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
using ArchivePtr = std::unique_ptr<archive, FreeArchive>;

/// Where libarchive writes to.
struct TarTarget {
  StagedBlob* blob;
  std::optional<Error> error;

  static la_ssize_t write(archive*, void* self, const void* data, std::size_t size) {
    auto* target = static_cast<TarTarget*>(self);
    auto written = target->blob->write({static_cast<const char*>(data), size});
    if (written) return static_cast<la_ssize_t>(size);
    target->error = written.error();
    return -1;
  }
};

Error tarError(archive* from, std::string_view object) {
  const char* text = archive_error_string(from);
  return plainError(Stage::state, "import", object, text == nullptr ? "cannot be archived" : text);
}

/// Adds one file to the archive; sockets have no form in it.
Result<void> archiveFile(archive* tar, archive_entry* entry, const std::string& relative) {
  if (archive_entry_filetype(entry) == AE_IFSOCK) return {};
  archive_entry_set_pathname(entry, relative.c_str());
  archive_entry_set_uid(entry, 0);
  archive_entry_set_gid(entry, 0);
  archive_entry_set_uname(entry, nullptr);
  archive_entry_set_gname(entry, nullptr);
  archive_entry_unset_atime(entry);
  archive_entry_unset_ctime(entry);
  archive_entry_unset_birthtime(entry);
  archive_entry_set_mtime(entry, archive_entry_mtime(entry), 0);
  archive_entry_set_fflags(entry, 0, 0);
  if (archive_write_header(tar, entry) != ARCHIVE_OK) return fail(tarError(tar, relative));
  if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_size(entry) == 0) return {};
  const sys::Fd file(::open(archive_entry_sourcepath(entry), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return fail(sysError(Stage::state, "open", relative, errno));
  std::vector<char> buffer(256U << 10);
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::state, "read", relative, errno));
    if (got == 0) return {};
    if (archive_write_data(tar, buffer.data(), static_cast<std::size_t>(got)) < 0) return fail(tarError(tar, relative));
  }
}

/// All paths below the directory, sorted, so that equal trees give equal archives.
Result<std::vector<std::string>> listTree(const std::string& path) {
  std::vector<std::string> paths;
  const ArchivePtr disk(archive_read_disk_new());
  archive_read_disk_set_symlink_physical(disk.get());
  archive_read_disk_set_behavior(disk.get(), ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS | ARCHIVE_READDISK_NO_XATTR |
                                                 ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS);
  if (archive_read_disk_open(disk.get(), path.c_str()) != ARCHIVE_OK) return fail(tarError(disk.get(), path));
  const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  while (true) {
    const int status = archive_read_next_header2(disk.get(), entry.get());
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK) return fail(tarError(disk.get(), path));
    archive_read_disk_descend(disk.get());
    paths.emplace_back(archive_entry_sourcepath(entry.get()));
  }
  std::ranges::sort(paths);
  return paths;
}

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

Result<ContentDigest> addDirectory(Transaction& transaction, const std::string& path, Progress& progress) {
  const auto paths = listTree(path);
  if (!paths) return fail(paths.error());
  auto blob = transaction.newBlob();
  if (!blob) return fail(blob.error());
  TarTarget target{&*blob, std::nullopt};
  const ArchivePtr tar(archive_write_new());
  archive_write_set_format_pax_restricted(tar.get());
  archive_write_set_options(tar.get(), "hdrcharset=BINARY");
  if (archive_write_open(tar.get(), &target, nullptr, TarTarget::write, nullptr) != ARCHIVE_OK)
    return fail(tarError(tar.get(), path));
  const ArchivePtr disk(archive_read_disk_new());
  archive_read_disk_set_symlink_physical(disk.get());
  archive_read_disk_set_behavior(disk.get(),
                                 ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS);
  const std::unique_ptr<archive_entry_linkresolver, decltype(&archive_entry_linkresolver_free)> links(
      archive_entry_linkresolver_new(), archive_entry_linkresolver_free);
  archive_entry_linkresolver_set_strategy(links.get(), ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
  const std::size_t step = progress.begin("reading " + path, 0);
  for (const std::string& one : *paths) {
    if (one.size() <= path.size()) continue;  // the directory itself
    archive_entry* entry = archive_entry_new();
    archive_entry_copy_sourcepath(entry, one.c_str());
    const std::string relative = one.substr(one.find_first_not_of('/', path.size()));
    archive_entry_copy_pathname(entry, relative.c_str());
    const int status = archive_read_disk_entry_from_file(disk.get(), entry, -1, nullptr);
    archive_entry* spare = nullptr;
    if (status == ARCHIVE_OK) archive_entry_linkify(links.get(), &entry, &spare);
    const std::unique_ptr<archive_entry, FreeEntry> owner(entry);
    if (status != ARCHIVE_OK) return fail(tarError(disk.get(), relative));
    if (auto done = archiveFile(tar.get(), entry, relative); !done) return fail(target.error.value_or(done.error()));
    progress.advance(step, blob->size());
  }
  if (archive_write_close(tar.get()) != ARCHIVE_OK) return fail(target.error.value_or(tarError(tar.get(), path)));
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
