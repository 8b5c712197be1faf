// Removes secrets from what a host sends back, or the payload could read one that the host repeats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::broker {

/// A shorter secret occurs in harmless text by chance, so it can't be masked: it is refused when it is configured.
inline constexpr std::size_t kLeastSecretBytes = 8;

/// Replaces each secret by "***", which hides its length, too.
std::string withoutSecrets(std::string_view text, const std::vector<std::string_view>& secrets);

/// The frames of a WebSocket from the host (RFC 6455, without extensions). A secret within one frame is overwritten
/// with asterisks, since its length is fixed; also if it arrives in pieces.
class FrameMasker {
 public:
  /// Appends to `out` what may be forwarded. False: the bytes are not frames of a server.
  bool feed(std::string_view bytes, const std::vector<std::string_view>& secrets, std::string& out);

 private:
  /// Adds one byte to the header; false if the header is not allowed.
  bool addToHead(char byte, std::string& out);
  /// Bytes at the end of held_ that could begin a secret.
  [[nodiscard]] std::size_t undecided(const std::vector<std::string_view>& secrets) const;

  std::string head_;        ///< of the next frame, as far as it arrived
  std::uint64_t left_ = 0;  ///< bytes of the frame that have not arrived
  std::string held_;        ///< the end of the frame so far, which could begin a secret
};

}  // namespace caisson::broker
