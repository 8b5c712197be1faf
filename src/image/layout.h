// The files of the image store, CAISSON_HOME/images:
//
//   oci-layout, index.json          names -> manifests, as in an OCI image layout: other tools can read the store
//   blobs/sha256/HEX                manifests, configurations, compressed layers
//   layers/HEX-single/root/         the unpacked layer with this blob digest, ready to be an overlay's lower layer
//   layers/HEX-single/record        one line per entry with its content hash; `caisson image verify` compares them
//   layers/HEX-single/report        what was neutralised while unpacking
//   layers/HEX-single/complete      written last; a layer without it does not exist
//   tmp/NAME/                       work in progress, locked by its process; removed after a crash
//   format                          the number of this layout; missing: 1
//   lock                            held shared while blobs are added, exclusively while they are removed
//
// Layers are keyed by the digest of the blob, which the trusted side computes, not by the DiffID that the image claims:
// a hostile image cannot put its content in the place of another image's layer. "single": all files belong to the
// caller. Whiteouts are character devices 0:0, opaque directories have `user.overlay.opaque` = "y" (mount option
// userxattr).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/content_digest.h"
#include "sys/root_dir.h"

namespace caisson::image {

inline constexpr std::string_view kStoreDirectory = "images";
inline constexpr std::string_view kIndexFile = "index.json";
inline constexpr std::string_view kFormatFile = "format";
inline constexpr std::string_view kBlobs = "blobs/sha256/";
inline constexpr std::string_view kLayers = "layers/";
inline constexpr std::string_view kLayerMode = "single";
inline constexpr std::string_view kLayerRoot = "/root";
inline constexpr std::string_view kLayerRecord = "/record";
inline constexpr std::string_view kLayerReport = "/report";
inline constexpr std::string_view kLayerComplete = "/complete";

/// Annotations of the store's index.
inline constexpr std::string_view kNameAnnotation = "org.opencontainers.image.ref.name";
/// The index (multi-platform) that the manifest was selected from, so that its digest finds the image too.
inline constexpr std::string_view kIndexAnnotation = "org.caisson.image.index";

/// The keys whose signatures were checked when the image was pulled, separated by spaces.
inline constexpr std::string_view kSignedAnnotation = "org.caisson.image.signed-by";

/// Names of intermediate images of builds; hidden from lists, removed by prune.
inline constexpr std::string_view kBuildCache = "localhost/caisson-build-cache:";

inline std::string blobPath(const ContentDigest& digest) { return std::string(kBlobs) + digest.hex(); }
inline std::string layerPath(const ContentDigest& digest) {
  return std::string(kLayers) + digest.hex() + "-" + std::string(kLayerMode);
}

/// CAISSON_HOME/images.
std::string storePath();

/// An error (isOtherVersion) if a later caisson has written the store in a format that this one does not know.
Result<void> checkStoreFormat(const sys::RootDir& store);

/// What an entry of a layer takes beside its content: an inode, and the rest of a block. A file of one byte takes 4
/// KiB.
inline constexpr std::uint64_t kEntryBytes = 4096;

/// The content of layers/X/complete. A new version of it needs a new format of the store.
struct LayerCompletion {
  ContentDigest layer, diff_id;
  ContentDigest record;  ///< of the file `record`
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< of its files and the record

  /// What counts against the quota.
  [[nodiscard]] std::uint64_t charged() const { return bytes + entries * kEntryBytes; }

  [[nodiscard]] std::string written() const;
  static Result<LayerCompletion> parse(std::string_view json);
};

}  // namespace caisson::image
