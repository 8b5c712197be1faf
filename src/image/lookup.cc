#include "image/lookup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "image/index_file.h"
#include "image/layout.h"

namespace caisson::image {
namespace {

constexpr int kLockAttempts = 200, kLockRetryMs = 10;

Error incomplete(std::string_view reference, std::string_view reason) {
  return plainError(Stage::state, "image", printable(reference), reason,
                    "caisson image remove it, then pull or import it again");
}

std::string fetchHint(std::string_view reference) {
  return "caisson image pull " + printable(reference) + ", or caisson image import FILE";
}

/// Opens the store. An error if another user could have written it: its content becomes the root of sandboxes.
Result<sys::RootDir> openStore(const std::string& path, std::string_view reference) {
  auto store = sys::RootDir::open(path, {.known_as = path});
  if (!store && store.error().sys_errno == ENOENT) {
    return fail(plainError(Stage::state, "image", printable(reference), "no such image: the image store is empty",
                           fetchHint(reference)));
  }
  if (!store) return store;
  const auto info = store->stat("");
  if (!info) return fail(info.error());
  if (info->uid != ::geteuid() || (info->mode & 022) != 0) {
    return fail(plainError(Stage::state, "image", path, "another user can write the image store"));
  }
  if (auto known = checkStoreFormat(*store); !known) return fail(known.error());
  return store;
}

/// Locks the layer against removal, checks its completion record and returns its lock.
Result<sys::Fd> useLayer(const sys::RootDir& store, const Descriptor& layer, const ContentDigest& diff_id,
                         std::string_view reference) {
  const std::string path = layerPath(layer.digest);
  Result<sys::Fd> file = fail(incomplete(reference, "a layer is being removed"));
  // `prune` holds the lock for a moment to see whether the layer is used. If it removes the layer, the name is gone.
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    file = store.openFile(path + std::string(kLayerComplete), {});
    if (!file) return fail(incomplete(reference, "layer " + layer.digest.text() + " is not unpacked"));
    if (::flock(file->get(), LOCK_SH | LOCK_NB) == 0) break;
    file = fail(incomplete(reference, "a layer is being removed"));
    ::poll(nullptr, 0, kLockRetryMs);
  }
  if (!file) return file;
  const auto text = store.readFile(path + std::string(kLayerComplete), kMaxDocument);
  if (!text) return fail(incomplete(reference, "a layer is being removed"));
  const auto record = LayerCompletion::parse(*text);
  if (!record) return fail(record.error());
  if (record->layer != layer.digest || record->diff_id != diff_id) {
    return fail(incomplete(reference, "layer " + layer.digest.text() + " does not match its completion record"));
  }
  const auto root = store.stat(path + std::string(kLayerRoot));
  if (!root || root->type != sys::FileType::directory) return fail(incomplete(reference, "a layer has no directory"));
  return std::move(*file);
}

}  // namespace

Result<StoredImage> lookup(std::string_view reference, const std::string& store_path) {
  const std::string path = store_path.empty() ? storePath() : store_path;
  const auto store = openStore(path, reference);
  if (!store) return fail(store.error());
  const auto names = readIndex(*store);
  if (!names) return fail(names.error());
  const auto entry = findImage(*store, *names, reference, fetchHint(reference));
  if (!entry) return fail(entry.error());
  const auto manifest_text = readBlob(*store, entry->manifest);
  if (!manifest_text) return fail(manifest_text.error());
  const auto manifest = parseManifest(*manifest_text);
  if (!manifest) return fail(manifest.error());
  const auto config_text = readBlob(*store, manifest->config.digest);
  if (!config_text) return fail(config_text.error());
  auto config = parseConfig(*config_text);
  if (!config) return fail(config.error());
  if (config->diff_ids.size() != manifest->layers.size()) {
    return fail(incomplete(reference, "manifest and configuration list different layers"));
  }
  StoredImage image{.name = entry->name,
                    .signed_by = entry->signed_by,
                    .manifest = entry->manifest,
                    .config_digest = manifest->config.digest,
                    .config = std::move(*config)};
  for (std::size_t at = 0; at < manifest->layers.size(); ++at) {
    // The kernel refuses an overlay with the same layer twice; the upper one hides the lower one.
    const auto same = [&](const Descriptor& other) { return other.digest == manifest->layers[at].digest; };
    if (std::any_of(manifest->layers.begin() + static_cast<std::ptrdiff_t>(at) + 1, manifest->layers.end(), same))
      continue;
    auto lock = useLayer(*store, manifest->layers[at], image.config.diff_ids[at], reference);
    if (!lock) return fail(lock.error());
    image.in_use.push_back(std::move(*lock));
    image.layers.push_back(path + "/" + layerPath(manifest->layers[at].digest) + std::string(kLayerRoot));
  }
  return image;
}

}  // namespace caisson::image
