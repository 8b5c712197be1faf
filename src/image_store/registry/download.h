// Downloads blobs in parallel into the store's partial/, continuing what an earlier attempt left there.
#pragma once

#include <vector>

#include "base/error.h"
#include "image_store/progress.h"
#include "image_store/registry/client.h"
#include "image_store/transaction.h"

namespace caisson::image {

inline constexpr std::size_t kParallelDownloads = 4;

/// Adds all `wanted` blobs to the transaction; sizes and digests are checked.
Result<void> downloadBlobs(Transaction& transaction, RegistrySession& session, const std::vector<Descriptor>& wanted,
                           Progress& progress);

}  // namespace caisson::image
