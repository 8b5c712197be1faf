#include "egress/http_body.h"

#include <algorithm>

namespace caisson::egress::http {
namespace {

constexpr std::size_t kExtraBytes = 8 * 1024;

int hexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyFramer::BodyFramer(const Framing& framing)
    : kind_(framing.kind), left_(framing.length), done_(framing.kind == Framing::Kind::none) {
  if (kind_ == Framing::Kind::chunked) left_ = 0;
}

std::size_t BodyFramer::feed(std::string_view bytes) {
  if (done_ || bad_) return 0;
  switch (kind_) {
    case Framing::Kind::none: return 0;
    case Framing::Kind::until_close: return bytes.size();
    case Framing::Kind::length: {
      const auto used = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      left_ -= used;
      done_ = left_ == 0;
      return used;
    }
    case Framing::Kind::chunked: return feedChunks(bytes, {});
  }
  return 0;
}

std::size_t BodyFramer::feed(std::string_view bytes, std::string& out, std::string& trailers) {
  if (kind_ == Framing::Kind::chunked && !done_ && !bad_) return feedChunks(bytes, {&out, &trailers});
  const std::size_t used = feed(bytes);
  out.append(bytes.substr(0, used));
  return used;
}

std::size_t BodyFramer::feedChunks(std::string_view bytes, Sink sink) {
  std::size_t at = 0;
  while (at < bytes.size() && !done_ && !bad_) {
    if (part_ == Part::data) {
      const auto used = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
      left_ -= used;
      if (sink.body != nullptr) sink.body->append(bytes.substr(at, used));
      at += used;
      if (left_ == 0) part_ = Part::data_return;
      continue;
    }
    const Part before = part_;
    if (!step(bytes[at])) {
      bad_ = true;
      break;
    }
    const bool trailer = before == Part::trailer || before == Part::trailer_end;
    const bool extension = part_ == Part::extension;
    std::string* const to = trailer ? sink.trailers : extension ? nullptr : sink.body;
    if (to != nullptr) to->push_back(bytes[at]);
    ++at;
  }
  return at;
}

bool BodyFramer::step(char c) {
  const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  switch (part_) {
    case Part::size:
      if (const int value = hexValue(c); value >= 0) {
        if (++digits_ > 15) return false;
        left_ = left_ * 16 + static_cast<std::uint64_t>(value);
        return true;
      }
      if (digits_ == 0) return false;
      if (c == ';') {
        part_ = Part::extension;
        return true;
      }
      part_ = Part::size_end;
      return c == '\r';
    case Part::extension:
      if (c == '\r') {
        part_ = Part::size_end;
        return true;
      }
      return !control && ++extra_ <= kExtraBytes;
    case Part::size_end:
      part_ = left_ > 0 ? Part::data : Part::trailer;
      digits_ = 0;
      line_empty_ = true;
      return c == '\n';
    case Part::data: return false;
    case Part::data_return: part_ = Part::data_end; return c == '\r';
    case Part::data_end: part_ = Part::size; return c == '\n';
    case Part::trailer:
      if (c == '\r') {
        part_ = Part::trailer_end;
        return true;
      }
      line_empty_ = false;
      return !control && ++extra_ <= kExtraBytes;
    case Part::trailer_end:
      if (c != '\n') return false;
      done_ = line_empty_;
      line_empty_ = true;
      part_ = Part::trailer;
      return true;
  }
  return false;
}

}  // namespace caisson::egress::http
