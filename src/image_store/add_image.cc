#include "image_store/add_image.h"

#include <algorithm>

#include "image_store/unpack_layer.h"

namespace caisson::image {
namespace {

constexpr int kMaxNesting = 3;  // an index of an OCI layout, an index of platforms

Result<std::string> fetchDocument(Transaction& transaction, const Descriptor& wanted, const FetchBlobs& fetch) {
  if (wanted.size > kMaxDocument) {
    return fail(plainError(Stage::state, "image", wanted.digest.text(), "the document is larger than 4 MiB"));
  }
  if (!transaction.has(wanted.digest)) {
    if (auto fetched = fetch({wanted}); !fetched) return fail(fetched.error());
  }
  transaction.need(wanted.digest);
  return transaction.readText(wanted.digest);
}

}  // namespace

Result<AddedImage> addImage(Transaction& transaction, const ContentDigest& digest, const Platform& platform,
                            const FetchBlobs& fetch, UnpackReport& report, Progress& progress) {
  std::optional<ContentDigest> index_digest;
  Descriptor here{.digest = digest};
  auto text = fetchDocument(transaction, here, fetch);
  for (int level = 0; text && isIndexType(documentType(*text)); ++level) {
    const auto index = parseIndex(*text);
    if (!index) return fail(index.error());
    const auto selected = selectPlatform(*index, platform);
    if (!selected) return fail(selected.error());
    if (level == kMaxNesting)
      return fail(plainError(Stage::state, "image", digest.text(), "indexes are nested too deeply"));
    index_digest = here.digest;
    here = *selected;
    text = fetchDocument(transaction, here, fetch);
  }
  if (!text) return fail(text.error());
  const auto manifest = parseManifest(*text);
  if (!manifest) return fail(manifest.error());
  const auto config_text = fetchDocument(transaction, manifest->config, fetch);
  if (!config_text) return fail(config_text.error());
  const auto config = parseConfig(*config_text);
  if (!config) return fail(config.error());
  if (config->diff_ids.size() != manifest->layers.size()) {
    return fail(plainError(Stage::state, "image", digest.text(), "manifest and configuration list different layers"));
  }
  std::vector<Descriptor> missing;
  for (const Descriptor& layer : manifest->layers) {
    transaction.need(layer.digest);
    const auto same = [&](const Descriptor& other) { return other.digest == layer.digest; };
    if (!transaction.has(layer.digest) && std::ranges::none_of(missing, same)) missing.push_back(layer);
  }
  if (!missing.empty()) {
    if (auto fetched = fetch(missing); !fetched) return fail(fetched.error());
  }
  for (std::size_t at = 0; at < manifest->layers.size(); ++at) {
    auto unpacked = unpackLayer(transaction, manifest->layers[at].digest, config->diff_ids[at], report, progress);
    if (!unpacked) return fail(unpacked.error());
  }
  return AddedImage{.stored = {.media_type = manifest->media_type,
                               .manifest = here.digest,
                               .size = text->size(),
                               .index = index_digest},
                    .config = manifest->config.digest};
}

}  // namespace caisson::image
