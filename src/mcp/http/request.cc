#include "mcp/http/request.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace caisson::mcp {
namespace {

bool isTokenLetter(char letter) {
  if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9'))
    return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(letter) != std::string_view::npos;
}

bool isToken(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), isTokenLetter); }

/// Whether a header may occur twice. Not those that a proxy and we could read differently then.
bool mayRepeat(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kSingle{
      "host", "content-length", "transfer-encoding", "content-type", "origin", "authorization", "last-event-id"};
  if (name.starts_with("mcp-")) return false;
  return std::find(kSingle.begin(), kSingle.end(), name) == kSingle.end();
}

bool hasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte < 0x20 && letter != '\t') || byte == 0x7F;
  });
}

}  // namespace

const std::string* HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return &value;
  return nullptr;
}

std::string HttpReader::readHeader(std::string_view line) {
  if (request_.headers.size() >= limits_.headers) return "too many headers";
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !isToken(line.substr(0, colon))) return "unreadable header";
  std::string name = lowered(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (hasControl(value)) return "control characters in a header";
  if (!mayRepeat(name) && request_.header(name) != nullptr) return "the header " + name + " is given twice";
  request_.headers.emplace_back(std::move(name), value);
  return {};
}

std::string HttpReader::readFraming() {
  if (request_.header("transfer-encoding") != nullptr) {
    refusal_ = 411;
    return "a body needs a Content-Length; other transfer encodings are not taken";
  }
  if (const std::string* length = request_.header("content-length")) {
    const char* const end = length->data() + length->size();
    const bool digits = !length->empty() && std::all_of(length->begin(), length->end(),
                                                        [](char letter) { return letter >= '0' && letter <= '9'; });
    if (!digits) return "unreadable Content-Length";
    const auto [stop, problem] = std::from_chars(length->data(), end, length_);
    if (problem != std::errc() || length_ > limits_.body) {
      refusal_ = 413;
      return "the body is too large";
    }
  }
  if (const std::string* expectation = request_.header("expect")) {
    if (lowered(*expectation) != "100-continue") {
      refusal_ = 417;
      return "unknown expectation";
    }
    expects_ = length_ > 0;
  }
  return {};
}

std::string HttpReader::readHead(std::string_view head) {
  const std::size_t first = head.find("\r\n");
  const std::string_view line = head.substr(0, first);
  const std::size_t space = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (space == std::string_view::npos || space == last) return "unreadable request line";
  const std::string_view version = line.substr(last + 1);
  const std::string_view target = line.substr(space + 1, last - space - 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    refusal_ = 505;
    return "only HTTP/1.1 is spoken here";
  }
  if (!isToken(line.substr(0, space)) || target.empty() || hasControl(target) || target.find(' ') != target.npos)
    return "unreadable request line";
  request_.method = line.substr(0, space);
  request_.target = target;
  for (std::size_t at = first; at != std::string_view::npos && at + 2 < head.size();) {
    const std::size_t end = head.find("\r\n", at + 2);
    if (std::string reason = readHeader(head.substr(at + 2, end == head.npos ? head.npos : end - at - 2));
        !reason.empty())
      return reason;
    at = end;
  }
  const std::string* connection = request_.header("connection");
  const std::string wish = connection == nullptr ? "" : lowered(*connection);
  request_.keep_alive = version == "HTTP/1.1" ? wish.find("close") == std::string::npos : false;
  return readFraming();
}

HttpReader::Next HttpReader::next() {
  if (!have_head_) {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end == std::string::npos ? buffer_.size() > limits_.head : end > limits_.head)
      return HttpRefusal{431, "the request's head is too large"};
    if (end == std::string::npos) {
      // A bare line feed does not end a line; without this check a client that sends only those would wait forever.
      if (buffer_.find("\n\n") != std::string::npos) return HttpRefusal{400, "lines end with CR LF"};
      return NeedsMore{};
    }
    request_ = {};
    length_ = 0;
    expects_ = false;
    refusal_ = 400;
    if (std::string reason = readHead(std::string_view(buffer_).substr(0, end)); !reason.empty())
      return HttpRefusal{refusal_, std::move(reason)};
    buffer_.erase(0, end + 4);
    have_head_ = true;
    head_taken_ = false;
  }
  if (buffer_.size() < length_) return NeedsMore{};
  request_.body = buffer_.substr(0, length_);
  buffer_.erase(0, length_);
  if (buffer_.empty()) buffer_.shrink_to_fit();
  have_head_ = false;
  return std::move(request_);
}

const HttpRequest* HttpReader::takeHead() {
  return have_head_ && !std::exchange(head_taken_, true) ? &request_ : nullptr;
}

bool HttpReader::takeExpectation() { return have_head_ && std::exchange(expects_, false); }

bool isLoopbackAuthority(std::string_view authority) {
  std::string_view host = authority;
  std::string_view port;
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    port = host.substr(end + 1);
    host = host.substr(0, end + 1);
  } else if (const std::size_t colon = host.find(':'); colon != std::string_view::npos) {
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  if (!port.empty()) {
    if (port.front() != ':' || port.size() < 2 || port.size() > 6) return false;
    if (!std::all_of(port.begin() + 1, port.end(), [](char digit) { return digit >= '0' && digit <= '9'; }))
      return false;
  }
  const std::string name = lowered(host);
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

bool isLoopbackOrigin(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return isLoopbackAuthority(origin.substr(scheme.size()));
  return false;
}

}  // namespace caisson::mcp
