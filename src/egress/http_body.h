// Finds the end of a message's body, strictly. Does not change the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "egress/http_head.h"

namespace caisson::egress::http {

class BodyFramer {
 public:
  BodyFramer() = default;
  explicit BodyFramer(const Framing& framing);

  /// Advances by `bytes`, which follow those of the last call, and returns how many of them belong to the body. If
  /// fewer than given, the body ended there or is bad.
  std::size_t feed(std::string_view bytes);
  /// As feed(). Appends to `out` what to forward: everything but chunk extensions, which recipients ignore, and the
  /// trailers, which it appends to `trailers`, with the empty line after them.
  std::size_t feed(std::string_view bytes, std::string& out, std::string& trailers);
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] bool bad() const { return bad_; }
  /// The body ends with the connection, so done() stays false.
  [[nodiscard]] bool untilClose() const { return kind_ == Framing::Kind::until_close; }

 private:
  enum class Part : std::uint8_t { size, extension, size_end, data, data_return, data_end, trailer, trailer_end };

  /// Where forwarded bytes go; null: nowhere.
  struct Sink {
    std::string* body = nullptr;
    std::string* trailers = nullptr;
  };
  /// feed() for a chunked body.
  std::size_t feedChunks(std::string_view bytes, Sink sink);
  /// Consumes one byte of the chunk framing; false if it is invalid here.
  bool step(char c);

  Framing::Kind kind_ = Framing::Kind::none;
  std::uint64_t left_ = 0;  ///< bytes left of the body or the chunk
  Part part_ = Part::size;
  int digits_ = 0;         ///< of the chunk size so far
  std::size_t extra_ = 0;  ///< bytes of extensions and trailers so far
  bool line_empty_ = true;
  bool done_ = true;
  bool bad_ = false;
};

}  // namespace caisson::egress::http
