// Finds a stored image for a launch. Small and fast: no network, no archives, a few small files.
//
//   auto image = image::lookup("debian:12");
//   if (!image) return fail(image.error());
//   mountOverlay(image->layers);     // bottom first
//   keep(std::move(image->in_use));  // as long as the layers are mounted
//
// Checked: the digests of manifest and configuration, the completion record of each layer and that it belongs to this
// image. Not checked: the content of the unpacked files, which only the caller can write (`caisson image verify`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/model.h"
#include "image/reference.h"
#include "sys/fd.h"

namespace caisson::image {

struct StoredImage {
  std::string name;                    ///< HOST/REPOSITORY:TAG in the index; empty for an image without a name
  std::vector<std::string> signed_by;  ///< see StoredName
  ContentDigest manifest, config_digest;
  ImageConfig config;
  /// Absolute directories of the unpacked layers, bottom first: read-only lower layers of an overlay with `userxattr`.
  std::vector<std::string> layers;
  /// Shared locks on the layers: the store removes none of them while one of these descriptors is open.
  std::vector<sys::Fd> in_use;
};

/// `reference` is a name (with Docker's defaults), NAME@DIGEST, or a digest `sha256:...` of a manifest or
/// configuration. With NAME@DIGEST the name must be stored with exactly this manifest, or come from the index with this
/// digest. `store`: the directory of the store; empty: storePath().
Result<StoredImage> lookup(std::string_view reference, const std::string& store = {});

}  // namespace caisson::image
