// The store's index.json: which names exist, and their manifests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/model.h"
#include "sys/root_dir.h"

namespace caisson::image {

struct StoredName {
  std::string name;  ///< HOST/REPOSITORY:TAG; empty for an image without a name
  std::string media_type;
  ContentDigest manifest;
  std::uint64_t size = 0;
  std::optional<ContentDigest> index;  ///< the index that the manifest was selected from
  /// Keys whose signatures under this name were checked when it was pulled (approval/image_signatures.h).
  std::vector<std::string> signed_by;
};

/// Empty if there is no index.json yet.
Result<std::vector<StoredName>> readIndex(const sys::RootDir& store);
/// An error if an index of so many entries could not be read again.
Result<void> checkIndexEntries(std::size_t entries);
/// Changes nothing if the index could not be read again.
Result<void> writeIndex(const sys::RootDir& store, const std::vector<StoredName>& names);

/// Reads a blob and checks its digest. For documents: at most kMaxDocument bytes.
Result<std::string> readBlob(const sys::RootDir& store, const ContentDigest& digest);

/// The entry that `reference` names: a name, NAME@DIGEST, `sha256:...`, or at least 6 digits of a configuration's
/// digest. `missing_hint`: what to do if there is no such image.
Result<StoredName> findImage(const sys::RootDir& store, const std::vector<StoredName>& names,
                             std::string_view reference, std::string_view missing_hint = "caisson image list");

}  // namespace caisson::image
