// The name of an image as users type it: `[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]`, with Docker's defaults.
//
//   debian:12                      -> docker.io/library/debian:12
//   localhost:5000/team/app        -> localhost:5000/team/app:latest
//   ghcr.io/a/b@sha256:...         -> exactly this manifest
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image/content_digest.h"

namespace caisson::image {

/// An image id as users type it: at least so many hexadecimal digits.
inline constexpr std::size_t kMinIdDigits = 6;
bool isImageId(std::string_view text);

struct Reference {
  std::string host;        ///< "docker.io", "localhost:5000"
  std::string repository;  ///< "library/debian"
  std::string tag;         ///< empty if only a digest was given
  std::optional<ContentDigest> digest;

  /// Strict: lower-case repositories, known characters, at most 255 bytes of name and 128 of tag.
  static Result<Reference> parse(std::string_view text);

  /// HOST/REPOSITORY.
  [[nodiscard]] std::string name() const { return host + "/" + repository; }
  /// HOST/REPOSITORY:TAG, without the digest; the key of the store's index. Without a tag: name().
  [[nodiscard]] std::string tagged() const { return tag.empty() ? name() : name() + ":" + tag; }
  /// Everything: HOST/REPOSITORY[:TAG][@DIGEST].
  [[nodiscard]] std::string text() const { return tagged() + (digest ? "@" + digest->text() : ""); }
  /// Whether a user could take the short form for an image id: `caff0123` (docker.io/library/caff0123:latest),
  /// `sha256:caff0123`.
  [[nodiscard]] bool looksLikeId() const;
  /// Without the parts that Docker adds: "debian:12".
  [[nodiscard]] std::string familiar() const;
};

}  // namespace caisson::image
