// `caisson image pull` and `push`.
#pragma once

#include <string>

#include "approval/owner.h"
#include "base/error.h"
#include "image/reference.h"
#include "image_store/add_image.h"
#include "image_store/store.h"

namespace caisson::image {

struct PullOptions {
  Reference reference;
  Platform platform = hostPlatform();
  std::uint64_t quota = 0;
  approval::ImageSettings settings;
};

struct PullResult {
  ContentDigest manifest, requested;  ///< `requested`: what the reference names, possibly an index
  bool changed = false;               ///< false: the store had this image under this name
  UnpackReport report;
};

Result<PullResult> pullImage(const Store& store, const PullOptions& options, Progress& progress);

/// Uploads the stored image as `target`; returns the digest of its manifest.
Result<ContentDigest> pushImage(const Store& store, const StoredName& image, const Reference& target,
                                const approval::ImageSettings& settings, Progress& progress);

}  // namespace caisson::image
