#include "image_store/save.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <vector>

#include "base/json_writer.h"
#include "image/reference.h"

namespace caisson::image {
namespace {

struct FreeWriter {
  void operator()(archive* one) const { archive_free(one); }
};

/// A tar archive of regular files, equal for equal contents.
class TarFile {
 public:
  explicit TarFile(int descriptor) : archive_(archive_write_new()) {
    archive_write_set_format_ustar(archive_.get());
    archive_write_set_bytes_per_block(archive_.get(), 1 << 20);
    archive_write_set_bytes_in_last_block(archive_.get(), 512);
    archive_write_open_fd(archive_.get(), descriptor);
  }

  Result<void> text(const std::string& name, std::string_view data) {
    if (auto begun = header(name, data.size()); !begun) return begun;
    return body(name, data);
  }
  Result<void> file(const std::string& name, int descriptor, Progress& progress) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) return fail(sysError(Stage::state, "stat", name, errno));
    if (auto begun = header(name, static_cast<std::uint64_t>(status.st_size)); !begun) return begun;
    const std::size_t step =
        progress.begin(name.substr(name.rfind('/') + 1, 12) + ": saving", static_cast<std::uint64_t>(status.st_size));
    std::vector<char> buffer(1U << 20);
    for (std::uint64_t done = 0;;) {
      const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(sysError(Stage::state, "read", name, errno));
      if (got == 0) break;
      if (auto written = body(name, {buffer.data(), static_cast<std::size_t>(got)}); !written) return written;
      progress.advance(step, done += static_cast<std::uint64_t>(got));
    }
    progress.end(step, "saved");
    return {};
  }
  Result<void> close() {
    return archive_write_close(archive_.get()) == ARCHIVE_OK ? Result<void>{} : fail(problem("archive"));
  }

 private:
  Result<void> header(const std::string& name, std::uint64_t size) {
    const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    return archive_write_header(archive_.get(), entry.get()) == ARCHIVE_OK ? Result<void>{} : fail(problem(name));
  }
  Result<void> body(const std::string& name, std::string_view data) {
    return archive_write_data(archive_.get(), data.data(), data.size()) >= 0 ? Result<void>{} : fail(problem(name));
  }
  Error problem(const std::string& name) {
    return sysError(Stage::state, "write", name, archive_errno(archive_.get()));
  }

  std::unique_ptr<archive, FreeWriter> archive_;
};

/// Names for the archive: as a user types them, without a digest.
std::string shownName(const StoredName& image) {
  const auto reference = Reference::parse(image.name);
  return reference ? reference->tagged() : "";
}

Result<void> addBlob(TarFile& tar, const Store& store, const ContentDigest& digest, const std::string& name,
                     Progress& progress) {
  const auto file = store.openBlob(digest);
  if (!file) return fail(file.error());
  return tar.file(name, file->get(), progress);
}

Result<void> saveOci(TarFile& tar, const Store& store, const StoredName& image, const Manifest& manifest,
                     Progress& progress) {
  JsonWriter json;
  json.beginObject().key("schemaVersion").number(2).key("mediaType").string(kOciIndex).key("manifests").beginArray();
  json.beginObject().key("mediaType").string(image.media_type).key("digest").string(image.manifest.text());
  json.key("size").number(image.size);
  if (const std::string name = shownName(image); !name.empty()) {
    json.key("annotations").beginObject().key("io.containerd.image.name").string(name);
    json.key(kNameAnnotation).string(name.substr(name.rfind(':') + 1)).end();
  }
  json.end().end().end();
  if (auto done = tar.text("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}"); !done) return done;
  if (auto done = tar.text("index.json", json.text()); !done) return done;
  std::set<ContentDigest> blobs{image.manifest, manifest.config.digest};
  for (const Descriptor& layer : manifest.layers) blobs.insert(layer.digest);
  for (const ContentDigest& digest : blobs)
    if (auto done = addBlob(tar, store, digest, blobPath(digest), progress); !done) return done;
  return {};
}

Result<void> saveDocker(TarFile& tar, const Store& store, const StoredName& image, const Manifest& manifest,
                        Progress& progress) {
  JsonWriter json;
  const std::string config = manifest.config.digest.hex() + ".json";
  json.beginArray().beginObject().key("Config").string(config).key("RepoTags").beginArray();
  if (const std::string name = shownName(image); !name.empty()) json.string(Reference::parse(name)->familiar());
  json.end().key("Layers").beginArray();
  for (const Descriptor& layer : manifest.layers) json.string(layer.digest.hex() + ".tar");
  json.end().end().end();
  std::set<ContentDigest> layers;
  for (const Descriptor& layer : manifest.layers) {
    if (!layers.insert(layer.digest).second) continue;
    if (auto done = addBlob(tar, store, layer.digest, layer.digest.hex() + ".tar", progress); !done) return done;
  }
  if (auto done = addBlob(tar, store, manifest.config.digest, config, progress); !done) return done;
  return tar.text("manifest.json", json.text());
}

}  // namespace

Result<void> saveImage(const Store& store, const StoredName& image, const std::string& path, SaveFormat format,
                       Progress& progress) {
  const auto text = readBlob(store.root(), image.manifest);
  if (!text) return fail(text.error());
  const auto manifest = parseManifest(*text);
  if (!manifest) return fail(manifest.error());
  const bool to_stdout = path == "-";
  const std::string partial = path + ".partial";
  const sys::Fd file(to_stdout ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                               : ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file)
    return fail(sysError(Stage::usage, "create", partial, errno,
                         errno == EEXIST ? "an earlier save was interrupted: remove the file" : ""));
  Result<void> done;
  {
    TarFile tar(file.get());
    done = format == SaveFormat::oci ? saveOci(tar, store, image, *manifest, progress)
                                     : saveDocker(tar, store, image, *manifest, progress);
    if (done) done = tar.close();
  }
  if (to_stdout) return done;
  if (done && ::rename(partial.c_str(), path.c_str()) != 0) done = fail(sysError(Stage::usage, "rename", path, errno));
  if (!done) ::unlink(partial.c_str());
  return done;
}

}  // namespace caisson::image
