#include "image/content_digest.h"

namespace caisson::image {

std::optional<ContentDigest> ContentDigest::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  Digest digest;
  if (!readHex(text, digest)) return std::nullopt;
  return ContentDigest(std::string(text));
}

}  // namespace caisson::image
