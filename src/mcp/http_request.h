// HTTP/1.1 requests, read strictly: what two parsers could understand differently is refused, not guessed at.
//
// Pure: bytes in, requests out. Not taken: chunked bodies (411), folded header lines, bare line feeds, repeated
// headers that decide something, heads above 32 KiB. Targets are not decoded; the server knows one path only.
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

/// Why a connection is answered with this status and closed.
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

  void add(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole request. After a refusal the reader is used up.
  Next next();
  /// Whether the client waits for `100 Continue` before it sends a body; true at most once per request.
  bool takeExpectation();
  /// The head of a request whose body is still to come, once per request: the moment to refuse it unread.
  const HttpRequest* takeHead();
  /// Whether nothing of a further request is there: an idle connection.
  [[nodiscard]] bool idle() const { return buffer_.empty() && !have_head_; }

 private:
  std::string readHead(std::string_view head);  ///< the reason why not, or empty
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

/// Whether a Host header, or the host of an Origin header, names this machine's loopback interface.
bool isLoopbackAuthority(std::string_view authority);
bool isLoopbackOrigin(std::string_view origin);

}  // namespace caisson::mcp
