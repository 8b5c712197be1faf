// Completes an image whose blobs are in a transaction: checks its documents and unpacks its layers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "image_store/progress.h"
#include "image_store/transaction.h"
#include "image_store/unpack_report.h"

namespace caisson::image {

struct AddedImage {
  StoredName stored;  ///< without a name yet
  ContentDigest config;
};

/// Adds blobs that the transaction does not have yet: one document, or all missing layers. Digests and sizes are to be
/// checked; a size of 0 is unknown.
using FetchBlobs = std::function<Result<void>(const std::vector<Descriptor>& wanted)>;

/// `digest` is a manifest, or an index from which the entry for `platform` is selected.
Result<AddedImage> addImage(Transaction& transaction, const ContentDigest& digest, const Platform& platform,
                            const FetchBlobs& fetch, UnpackReport& report, Progress& progress);

}  // namespace caisson::image
