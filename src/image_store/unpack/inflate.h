// The bytes of a blob, decompressed: gzip, zstd, or as they are. Hashes what it produces.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/sha256.h"

namespace caisson::image {

struct InflateLimits {
  std::uint64_t bytes = 0;  ///< of the result
  std::uint64_t ratio = 0;  ///< result to input, once the result exceeds ratio_from
  std::uint64_t ratio_from = 0;
};

class Inflater {
 public:
  Inflater(int input, InflateLimits limits);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// The next piece, valid until the next call; empty at the end and after an error.
  std::span<const char> next();
  /// Why next() failed; empty: it did not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::uint64_t produced() const { return produced_; }
  /// The digest of everything that next() returned. Call it once, at the end.
  Digest digest() { return hash_.finish(); }

 private:
  struct Codec;
  struct Plain;
  struct Gzip;
  struct Zstd;

  /// Reads more input if all of it was consumed; false at the end of the file or after an error.
  bool fill();
  void refuse(std::string reason) {
    if (problem_.empty()) problem_ = std::move(reason);
  }
  void chooseCodec();

  int input_;
  InflateLimits limits_;
  std::unique_ptr<char[]> in_, out_;
  std::size_t in_begin_ = 0, in_end_ = 0;
  std::uint64_t consumed_ = 0, produced_ = 0;
  Sha256 hash_;
  std::string problem_;
  std::unique_ptr<Codec> codec_;
};

}  // namespace caisson::image
