// HTTP/1.1 requests, parsed strictly: input that two parsers could read differently is rejected.
//
// Pure: bytes in, requests out. Rejected: chunked bodies (411), folded header lines, bare line feeds, repeated headers
// that affect parsing, heads above 32 KiB. Targets are not decoded; the server has one path only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace caisson::mcp {

struct HttpRequest {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names in lower case, values without outer blanks
  std::string body;
  bool keep_alive = true;

  /// The first header of that name (in lower case), or null.
  [[nodiscard]] const std::string* header(std::string_view name) const;
};

/// A rejected request: the status with which the connection is answered and closed.
struct HttpRefusal {
  int status = 400;
  std::string reason;
};

class HttpReader {
 public:
  struct Limits {
    std::size_t head = std::size_t{32} << 10U;
    std::size_t headers = 100;
    std::size_t body = std::size_t{8} << 20U;
  };
  explicit HttpReader(Limits limits) : limits_(limits) {}

  struct NeedsMore {};
  using Next = std::variant<NeedsMore, HttpRequest, HttpRefusal>;

  /// Adds received bytes.
  void add(std::string_view bytes) { buffer_.append(bytes); }
  /// Returns the next complete request. After a rejection the reader must not be used.
  Next next();
  /// Whether the client waits for `100 Continue` before it sends a body; true at most once per request.
  bool takeExpectation();
  /// The head of a request whose body has not arrived, once per request, so that it can be rejected unread.
  const HttpRequest* takeHead();
  /// Whether the connection is idle: no bytes of a further request.
  [[nodiscard]] bool idle() const { return buffer_.empty() && !have_head_; }

 private:
  // Each returns the reason for a rejection, or empty.
  std::string readHead(std::string_view head);
  std::string readHeader(std::string_view line);
  std::string readFraming();

  Limits limits_;
  std::string buffer_;
  HttpRequest request_;
  std::size_t length_ = 0;
  int refusal_ = 400;
  bool have_head_ = false;
  bool expects_ = false;
  bool head_taken_ = false;
};

/// Whether a Host header, or the host of an Origin header, is localhost, 127.0.0.1 or [::1], with or without a port.
bool isLoopbackAuthority(std::string_view authority);
bool isLoopbackOrigin(std::string_view origin);

}  // namespace caisson::mcp
