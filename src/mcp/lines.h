// The framing of the stdio transport: one message per line. Bytes in pieces of any size in, lines out.
//
//   LineSplitter lines(limit);
//   lines.add(bytes, [&](std::string_view line, bool whole) { ... });
//
// A line longer than the limit is never buffered: it is reported once, cut, with `whole` false, and the rest is
// skipped. Empty lines and a last line without a newline are not reported; a carriage return before the newline is not
// part of a line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace caisson::mcp {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t limit) : limit_(limit) {}

  template <class Deliver>
  void add(std::string_view bytes, Deliver deliver) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      take(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      const bool whole = !overlong_;
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      if (!line_.empty()) deliver(std::string_view(line_), whole);
      line_.clear();
      if (line_.capacity() > kKeep) line_.shrink_to_fit();  // do not keep the memory of one large message
      overlong_ = false;
    }
  }

  /// Bytes of an unfinished line that are held.
  [[nodiscard]] std::size_t held() const { return line_.size(); }

 private:
  static constexpr std::size_t kKeep = std::size_t{256} << 10U;
  static constexpr std::size_t kExcerpt = 64;  ///< kept of an overlong line

  void take(std::string_view piece) {
    if (overlong_) return;
    if (line_.size() + piece.size() > limit_) {
      line_.append(piece.substr(0, kExcerpt));
      line_.resize(std::min(line_.size(), kExcerpt));
      line_.shrink_to_fit();
      overlong_ = true;
      return;
    }
    line_.append(piece);
  }

  std::size_t limit_;
  std::string line_;
  bool overlong_ = false;
};

}  // namespace caisson::mcp
