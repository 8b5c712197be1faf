#include "image_store/import.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "image/reference.h"
#include "image_store/import_sources.h"
#include "image_store/signature.h"

namespace caisson::image {
namespace {

/// The source of an import and what it offers.
struct Source {
  std::vector<OfferedImage> offers;
  FetchBlobs fetch;
};

Result<void> nothingMore(const std::vector<Descriptor>& wanted) {
  return fail(plainError(Stage::state, "image", wanted.front().digest.text(), "the archive lacks this blob"));
}

Result<Source> openDirectory(Transaction& transaction, sys::Fd directory, const ImportOptions& options,
                             UnpackReport& report, Progress& progress) {
  const std::string origin = std::filesystem::path(options.path).lexically_normal().filename().string();
  auto root = sys::RootDir::adopt(std::move(directory), {.known_as = options.path});
  if (!root) return fail(root.error());
  if (root->stat("oci-layout") && root->stat(kIndexFile)) {
    const auto index = root->readFile(kIndexFile, kMaxDocument);
    if (!index) return fail(index.error());
    auto offers = offeredByLayout(*index, origin);
    if (!offers) return fail(offers.error());
    auto layout = std::make_shared<sys::RootDir>(std::move(*root));
    return Source{std::move(*offers),
                  [&transaction, layout, &progress](const std::vector<Descriptor>& wanted) -> Result<void> {
                    for (const Descriptor& blob : wanted)
                      if (auto added = addLayoutBlob(transaction, *layout, blob, progress); !added) return added;
                    return {};
                  }};
  }
  const auto layer = addDirectory(transaction, *root, progress);
  if (!layer) return fail(layer.error());
  const auto manifest = wrapLayer(transaction, *layer, options.platform, origin, report, progress);
  if (!manifest) return fail(manifest.error());
  return Source{{{*manifest, {}}}, nothingMore};
}

Result<Source> openArchive(Transaction& transaction, const sys::Fd& file, const ImportOptions& options,
                           UnpackReport& report, Progress& progress) {
  const std::string origin = std::filesystem::path(options.path).stem().string();
  // Opened again: the decoder is killed once the type is known, but may read on for a moment, and would move an offset
  // that it shares.
  const sys::Fd again(
      ::open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!again) return fail(sysError(Stage::state, "open", options.path, errno));
  const auto type = detectArchive(again.get());
  if (!type) return fail(type.error());
  if (*type == ArchiveType::image) {
    auto offers = readImageArchive(transaction, file.get(), origin, progress);
    if (!offers) return fail(offers.error());
    return Source{std::move(*offers), nothingMore};
  }
  const auto layer = addFile(transaction, file.get(), {}, "reading", progress);
  if (!layer) return fail(layer.error());
  const auto manifest = wrapLayer(transaction, *layer, options.platform, origin, report, progress);
  if (!manifest) return fail(manifest.error());
  return Source{{{*manifest, {}}}, nothingMore};
}

Result<Source> openSource(Transaction& transaction, const ImportOptions& options, UnpackReport& report,
                          Progress& progress) {
  sys::Fd file(::open(options.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return fail(sysError(Stage::usage, "open", options.path, errno));
  if (S_ISDIR(status.st_mode)) return openDirectory(transaction, std::move(file), options, report, progress);
  if (!S_ISREG(status.st_mode))
    return fail(plainError(Stage::usage, "import", options.path, "not a regular file or directory"));
  return openArchive(transaction, file, options, report, progress);
}

/// An error if another image has the name: an archive chooses its names, and could call itself debian:12.
Result<void> refuseReplaced(const std::vector<StoredName>& index, const std::string& name,
                            const ContentDigest& manifest) {
  const auto known = std::ranges::find(index, name, &StoredName::name);
  if (known == index.end() || known->manifest == manifest) return {};
  return fail(plainError(Stage::usage, "import", name,
                         "the archive has this name for an image, and the store has another image of this name",
                         "give a name after the path, or replace the stored image with --replace"));
}

}  // namespace

Result<ImportResult> importImage(const Store& store, const ImportOptions& options, Progress& progress) {
  std::string name;
  if (!options.name.empty()) {
    const auto reference = Reference::parse(options.name);
    if (!reference) return fail(reference.error());
    if (reference->digest)
      return fail(plainError(Stage::usage, "import", options.name, "a name for an import has no digest"));
    name = reference->tagged();
  }
  auto transaction = Transaction::begin(store, options.quota);
  if (!transaction) return fail(transaction.error());
  ImportResult result;
  const auto source = openSource(*transaction, options, result.report, progress);
  if (!source) return fail(source.error());
  if (source->offers.empty()) return fail(plainError(Stage::usage, "import", options.path, "the archive has no image"));
  if (!name.empty() && source->offers.size() > 1) {
    return fail(plainError(Stage::usage, "import", options.path, "the archive has several images",
                           "leave the name out to import all of them under their own names"));
  }
  const auto index = store.names();
  if (!index) return fail(index.error());
  std::vector<StoredName> added;
  for (const OfferedImage& offer : source->offers) {
    auto image = addImage(*transaction, offer.digest, options.platform, source->fetch, result.report, progress);
    if (!image) return fail(image.error());
    ImportedImage imported{.manifest = image->stored.manifest, .config = image->config};
    imported.names = name.empty() ? offer.names : std::vector{name};
    for (const std::string& one : imported.names) {
      const auto reference = Reference::parse(one);
      if (!reference) return fail(reference.error());
      const auto permitted = options.for_build ? Result<void>{} : checkNewName(*reference, options.settings);
      if (!permitted) return fail(permitted.error());
      if (name.empty() && !options.replace) {
        if (auto allowed = refuseReplaced(*index, one, image->stored.manifest); !allowed) return fail(allowed.error());
      }
      image->stored.name = one;
      added.push_back(image->stored);
    }
    if (imported.names.empty()) added.push_back(image->stored);
    if (added.size() > kMaxOfferedNames)
      return fail(plainError(Stage::usage, "import", options.path, "the archive has too many images and names"));
    result.images.push_back(std::move(imported));
  }
  if (auto committed = transaction->commit(added); !committed) return fail(committed.error());
  return result;
}

}  // namespace caisson::image
