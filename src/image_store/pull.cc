#include "image_store/pull.h"

#include <algorithm>

#include "image_store/registry/client.h"
#include "image_store/registry/download.h"
#include "image_store/signature.h"

namespace caisson::image {
namespace {

/// The reachable endpoint with its answer: mirrors first, then the registry itself.
struct Answer {
  std::unique_ptr<RegistrySession> session;
  FetchedManifest manifest;
};

Result<Answer> findManifest(const PullOptions& options) {
  const Reference& reference = options.reference;
  const std::string wanted = reference.digest ? reference.digest->text() : reference.tag;
  std::optional<Error> last;
  for (const Endpoint& endpoint : endpointsFor(reference.host, options.settings, false)) {
    if (endpoint.without_tls && last && last->sys_errno != kNoTls) break;
    auto session = std::make_unique<RegistrySession>(endpoint, reference.repository, "pull");
    auto manifest = RegistryClient(*session).manifest(wanted);
    if (manifest) return Answer{std::move(session), std::move(*manifest)};
    last = manifest.error();
  }
  return fail(*last);
}

std::string storedNameOf(const Reference& reference) {
  // A reference with only a digest is stored under its name without a tag.
  return reference.tagged();
}

Result<void> addManifest(Transaction& transaction, const FetchedManifest& manifest) {
  const auto added = transaction.addText(manifest.text);
  return added ? Result<void>{} : fail(added.error());
}

}  // namespace

Result<PullResult> pullImage(const Store& store, const PullOptions& options, Progress& progress) {
  if (auto allowed = refuseReserved(options.reference); !allowed) return fail(allowed.error());
  if (auto allowed = refuseIdName(options.reference); !allowed) return fail(allowed.error());
  const auto answer = findManifest(options);
  if (!answer) return fail(answer.error());
  RegistrySession& session = *answer->session;
  RegistryClient client(session);
  auto signed_by = requireSignatures(options.reference, answer->manifest.digest, options.settings, client);
  if (!signed_by) return fail(signed_by.error());
  auto transaction = Transaction::begin(store, options.quota);
  if (!transaction) return fail(transaction.error());
  if (auto added = addManifest(*transaction, answer->manifest); !added) return fail(added.error());
  const FetchBlobs fetch = [&](const std::vector<Descriptor>& wanted) -> Result<void> {
    // A manifest that an index lists is not a blob to registries.
    const std::string& type = wanted.front().media_type;
    if (type != kOciManifest && type != kDockerManifest && !isIndexType(type)) {
      return downloadBlobs(*transaction, session, wanted, progress);
    }
    const auto manifest = client.manifest(wanted.front().digest.text());
    return manifest ? addManifest(*transaction, *manifest) : fail(manifest.error());
  };
  PullResult result{.manifest = answer->manifest.digest, .requested = answer->manifest.digest};
  auto image = addImage(*transaction, answer->manifest.digest, options.platform, fetch, result.report, progress);
  if (!image) return fail(image.error());
  image->stored.name = storedNameOf(options.reference);
  image->stored.signed_by = *std::move(signed_by);
  result.manifest = image->stored.manifest;
  const auto names = store.names();
  if (!names) return fail(names.error());
  result.changed = std::ranges::none_of(*names, [&](const StoredName& old) {
    return old.name == image->stored.name && old.manifest == image->stored.manifest && old.index == image->stored.index;
  });
  if (auto committed = transaction->commit({image->stored}); !committed) return fail(committed.error());
  return result;
}

Result<ContentDigest> pushImage(const Store& store, const StoredName& image, const Reference& target,
                                const approval::ImageSettings& settings, Progress& progress) {
  auto in_use = StoreLock::take(store.root(), kUseLock, StoreLock::Kind::shared, kLockTimeout);
  if (!in_use) return fail(in_use.error());
  const auto text = readBlob(store.root(), image.manifest);
  if (!text) return fail(text.error());
  const auto manifest = parseManifest(*text);
  if (!manifest) return fail(manifest.error());
  std::vector<Descriptor> blobs = manifest->layers;
  blobs.push_back(manifest->config);
  std::optional<Error> last;
  for (const Endpoint& endpoint : endpointsFor(target.host, settings, true)) {
    if (endpoint.without_tls && last && last->sys_errno != kNoTls) break;
    RegistrySession session(endpoint, target.repository, "pull,push");
    RegistryClient client(session);
    const auto reachable = client.hasBlob(manifest->config.digest);
    if (!reachable) {
      last = reachable.error();
      continue;
    }
    for (const Descriptor& blob : blobs) {
      const std::size_t step = progress.begin(blob.digest.hex().substr(0, 12) + ": pushing", blob.size);
      const auto exists = client.hasBlob(blob.digest);
      if (!exists) return fail(exists.error());
      if (!*exists) {
        const auto file = store.openBlob(blob.digest);
        if (!file) return fail(file.error());
        auto sent = client.upload(blob, file->get(), [&](std::uint64_t done) { progress.advance(step, done); });
        if (!sent) return fail(sent.error());
      }
      progress.end(step, *exists ? "exists" : "pushed");
    }
    if (auto put = client.putManifest(target.tag, manifest->media_type, *text); !put) return fail(put.error());
    return image.manifest;
  }
  return fail(*last);
}

}  // namespace caisson::image
