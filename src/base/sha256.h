// SHA-256 (FIPS 180-4). Our own, since a cryptographic library costs start-up time and complicates cross builds.
// All but hex() is callable between clone and exec: no allocation, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  /// `portable` ignores the processor's SHA instructions, so that tests can compare both implementations.
  enum class Way : std::uint8_t { fastest, portable };
  explicit Sha256(Way way = Way::fastest) : way_(way) {}

  Sha256& add(const void* data, std::size_t size);
  Sha256& add(std::string_view text) { return add(text.data(), text.size()); }
  Sha256& add(const Digest& digest) { return add(digest.data(), digest.size()); }
  Sha256& add(std::uint8_t byte) { return add(&byte, 1); }
  /// Returns the digest of everything added; do not use the object afterwards.
  Digest finish();

 private:
  /// Hashes one block of 64 bytes into state_, with SHA instructions if possible.
  void compress(const std::uint8_t* block);
  void compressPortably(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};  ///< bytes that do not fill a block yet
  std::size_t have_ = 0;                    ///< how many of them are valid
  std::uint64_t total_ = 0;
  [[maybe_unused]] Way way_;  // unused where the processor has no SHA instructions
};

/// Writes 64 lower-case hexadecimal digits to `to`.
void writeHex(const Digest& digest, char* to);
std::string hex(const Digest& digest);
/// Parses 64 lower-case hexadecimal digits. Returns false for anything else; `digest` may be partly overwritten then.
bool readHex(std::string_view text, Digest& digest);

}  // namespace caisson
