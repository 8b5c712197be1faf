// The name of a blob: `sha256:` and the hash of its bytes. No other algorithm is accepted.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace caisson::image {

class ContentDigest {
 public:
  /// Parses `sha256:` and 64 lower-case hexadecimal digits.
  static std::optional<ContentDigest> parse(std::string_view text);
  static ContentDigest of(std::string_view data) { return ContentDigest(caisson::hex(Sha256().add(data).finish())); }
  static ContentDigest from(const Digest& digest) { return ContentDigest(caisson::hex(digest)); }

  /// The 64 digits: the blob's file name.
  [[nodiscard]] const std::string& hex() const { return hex_; }
  [[nodiscard]] std::string text() const { return "sha256:" + hex_; }

  auto operator<=>(const ContentDigest&) const = default;

 private:
  explicit ContentDigest(std::string hex) : hex_(std::move(hex)) {}

  std::string hex_;
};

}  // namespace caisson::image
