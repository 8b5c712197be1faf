// The kinds of sources that importImage() tells apart. Each adds its blobs to the transaction.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "image_store/add_image.h"
#include "image_store/transaction.h"
#include "sys/root_dir.h"

namespace caisson::image {

/// Names that one import may add: each is an entry of the index and a record of the audit log.
inline constexpr std::size_t kMaxOfferedNames = 1000;

/// A manifest or index that a source offers, with its names as the source states them.
struct OfferedImage {
  ContentDigest digest;
  std::vector<std::string> names;
};

enum class ArchiveType : std::uint8_t { image, root };
/// Reads only as many names of the archive as needed.
Result<ArchiveType> detectArchive(int file);

/// The images of an OCI layout's index.json. `origin`: the name of the file or directory, for entries with only a tag.
Result<std::vector<OfferedImage>> offeredByLayout(std::string_view index_json, std::string_view origin);

/// Adds all files of an image archive; `file` is at its beginning. Returns its images.
Result<std::vector<OfferedImage>> readImageArchive(Transaction& transaction, int file, std::string_view origin,
                                                   Progress& progress);

/// Adds one blob of an OCI layout in a directory.
Result<void> addLayoutBlob(Transaction& transaction, const sys::RootDir& layout, const Descriptor& wanted,
                           Progress& progress);

/// Copies the file into the transaction as a blob.
Result<ContentDigest> addFile(Transaction& transaction, int file, const std::optional<ContentDigest>& expected,
                              const std::string& title, Progress& progress);
/// Writes the directory as a tar archive into the transaction: sorted names, owner 0:0, times as they are. Follows no
/// link and enters no other mount, also if another process changes the directory meanwhile.
Result<ContentDigest> addDirectory(Transaction& transaction, const sys::RootDir& directory, Progress& progress);

/// Adds configuration and manifest of an image with one layer, which gets unpacked.
Result<ContentDigest> wrapLayer(Transaction& transaction, const ContentDigest& layer, const Platform& platform,
                                std::string_view origin, UnpackReport& report, Progress& progress);

/// The JSON text of a manifest with these parts; types are Docker's or OCI's.
std::string writeManifest(const Descriptor& config, const std::vector<Descriptor>& layers, bool docker);

}  // namespace caisson::image
