#include "image_store/signature.h"

#include <algorithm>

#include "approval/image_signatures.h"
#include "base/base64.h"
#include "base/json_value.h"
#include "image_store/public_key.h"
#include "image_store/store.h"

namespace caisson::image {
namespace {

constexpr std::uint64_t kMaxPayload = 64U << 10;
constexpr std::size_t kMaxSignatures = 32;
constexpr std::string_view kPayloadType = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr std::string_view kSignatureAnnotation = "dev.cosignproject.cosign/signature";

struct SignedPayload {
  std::string payload, signature;
};

/// The entries of a signature manifest; their type differs from an image's, so parseManifest() does not apply.
Result<std::vector<SignedPayload>> fetchSignatures(const ContentDigest& manifest, RegistryClient& client) {
  std::vector<SignedPayload> list;
  const auto fetched = client.manifest("sha256-" + manifest.hex() + ".sig");
  if (!fetched) return fail(fetched.error());
  const auto document = JsonValue::parse(fetched->text);
  const auto layers = document ? document->find("layers") : std::nullopt;
  std::size_t asked = 0;
  for (const JsonValue& layer : layers ? layers->items() : std::vector<JsonValue>{}) {
    const auto digest = ContentDigest::parse(layer.textAt("digest").value_or(""));
    const auto size = layer.integerAt("size");
    const auto annotations = layer.find("annotations");
    const auto signature =
        annotations ? decodeBase64(annotations->textAt(kSignatureAnnotation).value_or("")) : std::nullopt;
    const bool known = layer.textAt("mediaType") == kPayloadType && digest && size && *size > 0 &&
                       static_cast<std::uint64_t>(*size) <= kMaxPayload && signature;
    if (!known || asked == kMaxSignatures) continue;
    ++asked;
    std::string payload;
    const auto got = client.blob(
        {.digest = *digest, .size = static_cast<std::uint64_t>(*size)}, 0, [] {},
        [&](std::string_view piece) -> Result<void> {
          payload += piece;
          return {};
        },
        [] { return false; });
    if (got && ContentDigest::of(payload) == *digest) list.push_back({std::move(payload), *signature});
  }
  return list;
}

Error unsignedError(const Reference& reference, std::string_view reason) {
  return approval::unsignedImage(reference.familiar(), reason);
}

}  // namespace

std::optional<std::string> signedName(std::string_view payload, const ContentDigest& manifest) {
  const auto document = JsonValue::parse(payload);
  const auto critical = document ? document->find("critical") : std::nullopt;
  const auto image = critical ? critical->find("image") : std::nullopt;
  const auto identity = critical ? critical->find("identity") : std::nullopt;
  if (!image || image->textAt("docker-manifest-digest") != manifest.text()) return std::nullopt;
  return identity ? identity->textAt("docker-reference").value_or("") : "";
}

bool namesRepository(std::string_view stated, const Reference& reference, const ContentDigest& manifest) {
  constexpr std::string_view kHub = "index.docker.io/";  // as cosign writes docker.io
  const std::string name =
      stated.starts_with(kHub) ? "docker.io/" + std::string(stated.substr(kHub.size())) : std::string(stated);
  const std::string own = reference.name();
  return name == own || name == own + "@" + manifest.text() ||
         (!reference.tag.empty() && name == own + ":" + reference.tag);
}

Result<std::vector<std::string>> requireSignatures(const Reference& reference, const ContentDigest& manifest,
                                                   const approval::ImageSettings& settings, RegistryClient& client) {
  std::vector<std::string> accepted_keys;
  const auto groups = approval::signatureRulesFor(reference.name(), settings);
  if (groups.empty()) return accepted_keys;
  const auto signatures = fetchSignatures(manifest, client);
  if (!signatures) return fail(unsignedError(reference, "the image is not signed"));
  for (const auto& [group, rules] : groups) {
    bool accepted = false;
    std::string other_name;
    for (const approval::SignatureRule* rule : rules) {
      const auto key = approval::readSignatureKey(*rule);
      if (!key) return fail(key.error());
      const std::string id = approval::signatureKeyId(*key);
      for (const SignedPayload& one : *signatures) {
        const auto name = signedName(one.payload, manifest);
        if (!name || !verifySignature(*key, one.payload, one.signature)) continue;
        if (namesRepository(*name, reference, manifest)) {
          accepted = true;
          if (std::ranges::find(accepted_keys, id) == accepted_keys.end()) accepted_keys.push_back(id);
        } else {
          other_name = name->empty() ? "no name" : *name;
        }
      }
    }
    if (accepted) continue;
    if (other_name.empty()) return fail(unsignedError(reference, "the image has no signature by an accepted key"));
    return fail(unsignedError(reference, "the image is signed as " + other_name + ", not under this name"));
  }
  return accepted_keys;
}

Result<void> refuseUnsigned(const Reference& reference, const approval::ImageSettings& settings) {
  if (approval::signatureRulesFor(reference.name(), settings).empty()) return {};
  return fail(unsignedError(reference, "an image that is imported or tagged here has no signature under this name"));
}

Result<void> checkNewName(const Reference& reference, const approval::ImageSettings& settings) {
  if (auto allowed = refuseUnsigned(reference, settings); !allowed) return allowed;
  if (auto allowed = refuseReserved(reference); !allowed) return allowed;
  return refuseIdName(reference);
}

}  // namespace caisson::image
