// The JSON documents of an image: index, manifest, configuration. OCI image format 1.x and Docker's schema 2.
//
// All come from strangers. Parsing checks types, sizes and digests, bounds every list, and ignores unknown members.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/content_digest.h"

namespace caisson::image {

/// Larger manifests, indexes and configurations are refused, as registries do.
inline constexpr std::uint64_t kMaxDocument = 4U << 20;
inline constexpr std::size_t kMaxLayers = 256;
inline constexpr std::size_t kMaxIndexEntries = 4096;

inline constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kOciConfig = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kOciLayer = "application/vnd.oci.image.layer.v1.tar";  // "+gzip", "+zstd"
inline constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view kDockerList = "application/vnd.docker.distribution.manifest.list.v2+json";
inline constexpr std::string_view kDockerConfig = "application/vnd.docker.container.image.v1+json";
inline constexpr std::string_view kDockerLayer = "application/vnd.docker.image.rootfs.diff.tar";  // ".gzip"

struct Platform {
  std::string os, architecture, variant;

  bool operator==(const Platform&) const = default;
  /// "linux/arm64/v8".
  [[nodiscard]] std::string text() const;
};

/// The platform that caisson was built for.
Platform hostPlatform();
/// Parses "linux/arm64" or "linux/arm/v7".
std::optional<Platform> parsePlatform(std::string_view text);

struct Descriptor {
  std::string media_type;
  ContentDigest digest;
  std::uint64_t size = 0;
  std::optional<Platform> platform;
  std::map<std::string, std::string> annotations;
};

struct Manifest {
  std::string media_type;
  Descriptor config;
  std::vector<Descriptor> layers;  ///< bottom first
};

struct Index {
  std::string media_type;
  std::vector<Descriptor> manifests;
};

/// The configuration that applies to a container, and the identity of the layers.
struct ImageConfig {
  Platform platform;
  std::string created;
  std::vector<std::string> env;  ///< "NAME=VALUE"
  std::vector<std::string> entrypoint, cmd;
  std::string working_dir;
  std::string user;  ///< "name", "1000", "name:group"; empty: root
  std::map<std::string, std::string> labels;
  std::vector<ContentDigest> diff_ids;  ///< of the uncompressed layers, bottom first
};

/// Whether `media_type` is that of an index or a manifest list.
bool isIndexType(std::string_view media_type);
/// The media type that the document states, or one derived from its members; empty if it is neither index nor manifest.
std::string documentType(std::string_view json);

Result<Manifest> parseManifest(std::string_view json);
Result<Index> parseIndex(std::string_view json);
Result<ImageConfig> parseConfig(std::string_view json);

/// The entry of `index` for `wanted`: same os and architecture, and the same variant where both state one.
Result<Descriptor> selectPlatform(const Index& index, const Platform& wanted);

}  // namespace caisson::image
