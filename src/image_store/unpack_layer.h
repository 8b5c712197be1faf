// Unpacks a layer of the transaction: the confined decoder parses it, LayerWriter writes the files.
#pragma once

#include <optional>

#include "base/error.h"
#include "image_store/layer_writer.h"
#include "image_store/progress.h"
#include "image_store/transaction.h"

namespace caisson::image {

/// Returns the DiffID, which must be `expected` if that is given. Nothing is done for a layer that is unpacked already.
Result<ContentDigest> unpackLayer(Transaction& transaction, const ContentDigest& layer,
                                  const std::optional<ContentDigest>& expected, UnpackReport& report,
                                  Progress& progress);

}  // namespace caisson::image
