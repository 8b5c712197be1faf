// `caisson image save`: an image as a tar archive.
#pragma once

#include <string>

#include "base/error.h"
#include "image_store/progress.h"
#include "image_store/store.h"

namespace caisson::image {

enum class SaveFormat : std::uint8_t { oci, docker };

/// Writes the archive to `path`, which appears only when it is complete; "-": to standard output.
Result<void> saveImage(const Store& store, const StoredName& image, const std::string& path, SaveFormat format,
                       Progress& progress);

}  // namespace caisson::image
