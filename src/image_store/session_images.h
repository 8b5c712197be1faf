// Images that sessions use, running or not. A session keeps the digest of its image, and its checkpoints need the image
// too.
#pragma once

#include <set>

#include "base/error.h"
#include "image/content_digest.h"

namespace caisson::image {

/// The manifests of all sessions' images. An error if the metadata of a session cannot be read: its image is unknown.
Result<std::set<ContentDigest>> sessionImages();

}  // namespace caisson::image
