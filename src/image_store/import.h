// `caisson image import`: from an OCI layout (directory or archive), a docker-archive, a root tarball or a directory.
#pragma once

#include <string>
#include <vector>

#include "approval/owner.h"
#include "base/error.h"
#include "image_store/add_image.h"
#include "image_store/store.h"

namespace caisson::image {

struct ImportOptions {
  std::string path;
  std::string name;  ///< empty: the names in the archive, if any
  Platform platform = hostPlatform();
  std::uint64_t quota = 0;
  approval::ImageSettings settings;
  bool replace = false;    ///< names of the archive may replace those of other images in the store
  bool for_build = false;  ///< `name` is one of the build cache, which users cannot give
};

struct ImportedImage {
  std::vector<std::string> names;
  ContentDigest manifest, config;
};

struct ImportResult {
  std::vector<ImportedImage> images;
  UnpackReport report;
};

Result<ImportResult> importImage(const Store& store, const ImportOptions& options, Progress& progress);

}  // namespace caisson::image
