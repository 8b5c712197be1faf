// What several verbs of caisson-image share.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "image/model.h"
#include "image_store/store.h"
#include "image_store/unpack_report.h"

namespace caisson::cli {

/// A stored image with its documents.
struct LoadedImage {
  image::StoredName stored;
  image::Manifest manifest;
  image::ImageConfig config;
  std::string manifest_text, config_text;
};

Result<LoadedImage> loadImage(const image::Store& store, const image::StoredName& stored);
Result<LoadedImage> loadImage(const image::Store& store, std::string_view reference);

/// An error unless the number of operands is in the range.
Result<void> expectOperands(const Arguments& arguments, std::size_t least, std::size_t most);
/// --platform, or this machine's.
Result<image::Platform> platformFrom(const Arguments& arguments);
/// The quota of the store, from the owner's configuration.
Result<std::uint64_t> storeQuota();

/// Prints what was neutralised: one line per kind, with examples.
void printReport(const image::UnpackReport& report);
/// The name as users type it; "<none>" without one.
std::string shownImageName(const image::StoredName& stored);

}  // namespace caisson::cli
