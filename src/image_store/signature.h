// Signatures of images, in the format of cosign: the tag `sha256-HEX.sig` of the same repository is a manifest whose
// layers are small documents naming the signed manifest's digest and repository; an annotation has the signature over
// the document.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "approval/owner.h"
#include "base/error.h"
#include "image/reference.h"
#include "image_store/registry/client.h"

namespace caisson::image {

/// The name under which the document signs this manifest, "" if it has none; nothing if it signs another manifest.
std::optional<std::string> signedName(std::string_view payload, const ContentDigest& manifest);
/// Whether a signed name is that of the repository, alone or with the tag or the digest. An image that is signed as
/// team/dev must not pass as team/prod.
bool namesRepository(std::string_view stated, const Reference& reference, const ContentDigest& manifest);

/// An error if the owner requires a signature for this image and there is none by an accepted key. Without rules for
/// the image nothing is fetched. Returns the ids of the keys that signed it.
Result<std::vector<std::string>> requireSignatures(const Reference& reference, const ContentDigest& manifest,
                                                   const approval::ImageSettings& settings, RegistryClient& client);

/// For images that do not come from a registry, and so have no signature.
Result<void> refuseUnsigned(const Reference& reference, const approval::ImageSettings& settings);

/// An error for a name that no import, build or tag may give: one that needs a signature, of the build cache, or like
/// an id.
Result<void> checkNewName(const Reference& reference, const approval::ImageSettings& settings);

}  // namespace caisson::image
