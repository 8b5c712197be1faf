// Passes one request on to a server on this machine. One request per upstream connection: whatever framing the upstream
// claims, its bytes cannot become the response to another request.
#include <netinet/in.h>

#include <algorithm>
#include <limits>
#include <optional>

#include <boost/asio/write.hpp>

#include "http/connection.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMaxBuffered = std::size_t{256} << 10U;
constexpr int kMaxInterim = 32;  ///< interim responses (1xx) before the response

/// The upstream connection: results of operations as flags, since the connection waits in one place only.
struct Upstream {
  Upstream(asio::io_context& io, const RequestHead& head, std::size_t max_headers)
      : socket(io),
        buffer(std::size_t{32} << 10U, '\0'),
        limit(max_headers),
        bodiless(head.method == "HEAD"),
        upgrades(head.upgrades) {
    expectAnswer();
  }
  /// Begins to parse a response, the first one or the one after an interim response.
  void expectAnswer() {
    answer.emplace(limit);
    answer->header_limit(std::uint32_t{64} << 10U);
    answer->body_limit(std::numeric_limits<std::uint64_t>::max());
    answer->eager(true);
    if (bodiless) answer->skip(true);
  }
  Socket socket;
  std::string buffer, inbox, sending;
  std::string outgoing;  ///< the request, as far as it is not being sent
  std::size_t limit;     ///< of the number of headers
  bool bodiless;         ///< the method of the request is HEAD
  bool upgrades;         ///< the request asks for another protocol
  std::optional<MessageParser<false>> answer;
  int interim = 0;
  bool connected = false, reading = false, writing = false, ended = false, failed = false;
  bool body_done = false;  ///< the request is complete
  bool tunnel = false;     ///< after an upgrade: bytes both ways
  bool answered = false;   ///< the head of the response was sent
  bool chunked = false;    ///< how the response is sent
};
using UpstreamPointer = std::shared_ptr<Upstream>;

void readUpstream(const UpstreamPointer& up, std::function<void()> wake) {
  if (up->reading || up->ended || up->inbox.size() >= kMaxBuffered) return;
  up->reading = true;
  up->socket.async_read_some(asio::buffer(up->buffer), [up, wake = std::move(wake)](BoostError code, std::size_t size) {
    up->reading = false;
    up->inbox.append(up->buffer, 0, size);
    if (code) up->ended = true;
    wake();
  });
}

void writeUpstream(const UpstreamPointer& up, std::function<void()> wake) {
  if (up->writing || up->outgoing.empty()) return;
  up->writing = true;
  up->sending = std::exchange(up->outgoing, "");
  asio::async_write(up->socket, asio::buffer(up->sending), [up, wake = std::move(wake)](BoostError code, std::size_t) {
    up->writing = false;
    if (code) up->failed = true;
    wake();
  });
}

std::string requestText(const RequestHead& head, const ProxyBody& body) {
  std::string text = head.method + " " + body.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : body.request_headers) text += name + ": " + value + "\r\n";
  if (head.content_length) text += "Content-Length: " + std::to_string(*head.content_length) + "\r\n";
  if (head.has_body && !head.content_length) text += "Transfer-Encoding: chunked\r\n";
  return text + (head.upgrades ? "\r\n" : "Connection: close\r\n\r\n");
}

std::string asChunk(std::string_view bytes) {
  char size[20];
  const int length = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return std::string(size, static_cast<std::size_t>(length)).append(bytes).append("\r\n");
}

/// Headers of the upstream that are not passed on: they concern its connection, or headText() adds our own.
bool isReplaced(std::string_view name) {
  return name == "date" || name == "connection" || name == "keep-alive" || name == "transfer-encoding" ||
         name == "content-length" || name == "trailer" || name == "upgrade" || name == "proxy-authenticate";
}

/// Drops an interim response and expects the next. False if there were too many, or if it switches to a protocol that
/// was not asked for.
bool skipInterim(Upstream& up) {
  if (up.answer->status == 101 || ++up.interim > kMaxInterim) return false;
  up.expectAnswer();
  return true;
}

/// Parses what the upstream sent. False if it is malformed.
bool parseAnswer(Upstream& up) {
  BoostError code;
  while (!code && !up.inbox.empty() && !up.answer->is_done()) {
    const std::size_t used = up.answer->put(asio::buffer(up.inbox), code);
    up.inbox.erase(0, used);
    const bool incomplete = code == beast::http::error::need_more;
    if (incomplete) code = {};
    if (incomplete || used == 0) break;
    const bool interim = up.answer->is_header_done() && up.answer->status < 200;
    if (interim && !(up.answer->status == 101 && up.upgrades) && !skipInterim(up)) return false;
  }
  const bool cut = up.ended && up.inbox.empty() && up.answer->got_some() && !up.answer->is_done();
  if (!code && cut) up.answer->put_eof(code);
  return !code;
}

/// The response's head for the client.
Response makeAnswer(const Upstream& up, const ProxyBody& body) {
  Response response{.status = up.answer->status};
  const auto& dropped = body.dropped_response;
  for (const auto& [name, value] : up.answer->headers) {
    const bool kept = up.tunnel ? name != "content-length" && name != "date" : !isReplaced(name);
    if (kept && std::find(dropped.begin(), dropped.end(), name) == dropped.end())
      response.headers.emplace_back(name, value);
  }
  response.headers.insert(response.headers.end(), body.response_headers.begin(), body.response_headers.end());
  return response;
}

}  // namespace

struct Connection::Proxied {
  const RequestHead& head;
  const ProxyBody& body;
  Parser& parser;
  UpstreamPointer up;
};

asio::awaitable<bool> Connection::proxy(const RequestHead& head, ProxyBody& body, Parser& parser) {
  keep_alive_ = false;
  if (!loop_.watches.isAvailable()) {
    co_await refuseWatch();
    co_return false;
  }
  auto up = std::make_shared<Upstream>(loop_.io, head, loop_.limits.headers);
  const std::function<void()> wake_up = [self = shared_from_this()] { self->wake(); };
  sockaddr_in where{.sin_family = AF_INET, .sin_port = htons(body.port)};
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const asio::generic::stream_protocol::endpoint endpoint(&where, sizeof where);
  up->socket.async_connect(endpoint, [up, wake_up](BoostError code) {
    (code ? up->failed : up->connected) = true;
    wake_up();
  });
  const TimePoint deadline = Clock::now() + std::chrono::seconds(10);
  while (!up->connected && !up->failed) {
    const bool woken = co_await pause(deadline);
    if (!woken) up->failed = true;
  }
  if (up->connected) {
    up->outgoing = requestText(head, body);
    up->body_done = !head.has_body;
    const std::lock_guard lock(body_mutex_);  // bytes of the body that arrived while the handler ran
    parser.body.insert(0, body_ready_.substr(body_taken_));
    body_ready_.clear();
    body_taken_ = 0;
  }
  Proxied proxied{head, body, parser, up};
  if (up->connected) co_await runProxy(proxied, wake_up);
  BoostError ignored;
  up->socket.close(ignored);
  if (!up->answered && !ended_) {
    const char* const reason = up->connected ? "the server in the sandbox gave no valid response"
                                             : "nothing listens on this port in the sandbox";
    co_await refuse(loop_.handler.failure(502, reason));
  }
  co_return false;
}

asio::awaitable<void> Connection::runProxy(Proxied& proxied, const std::function<void()>& wake_up) {
  const UpstreamPointer up = proxied.up;
  TimePoint deadline = Clock::now() + std::chrono::seconds(60);
  for (;;) {
    if (!forwardBody(proxied)) co_return;
    if (up->failed && !up->answered) up->ended = true;
    writeUpstream(up, wake_up);
    readUpstream(up, wake_up);
    if (!up->tunnel && !parseAnswer(*up)) co_return;
    const bool complete = up->answer->is_done();
    std::string bytes;
    if (up->answer->is_header_done() && !up->answered) bytes = answerHead(proxied);
    std::string& piece = up->tunnel ? up->inbox : up->answer->body;
    if (!piece.empty()) bytes += up->chunked ? asChunk(piece) : piece;
    piece.clear();
    if (complete && !up->tunnel && up->chunked) bytes += "0\r\n\r\n";
    if (!bytes.empty()) {
      const bool sent = co_await write(bytes);
      if (!sent) co_return;
      deadline = Clock::now() + std::chrono::minutes(10);
    }
    if (complete && !up->tunnel) co_return;
    if (!bytes.empty()) continue;
    if (ended_ || up->ended || (loop_.stopping && up->tunnel)) co_return;
    if (up->outgoing.size() < kMaxBuffered) startRead();
    const bool woken = co_await pause(deadline);
    if (!woken) co_return;
  }
}

bool Connection::forwardBody(Proxied& proxied) {
  Upstream& up = *proxied.up;
  if (up.outgoing.size() >= kMaxBuffered) return true;
  if (up.tunnel) {
    up.outgoing += std::exchange(inbox_, "");
    return true;
  }
  if (up.body_done) return true;
  if (!feedBody(proxied.parser)) return false;
  std::string piece = std::exchange(proxied.parser.body, "");
  if (!piece.empty()) up.outgoing += proxied.head.content_length ? piece : asChunk(piece);
  up.body_done = proxied.parser.is_done();
  if (up.body_done && !proxied.head.content_length) up.outgoing += "0\r\n\r\n";
  return true;
}

std::string Connection::answerHead(Proxied& proxied) {
  Upstream& up = *proxied.up;
  up.answered = true;
  const int status = up.answer->status;
  up.tunnel = status == 101;
  std::optional<std::uint64_t> length;
  if (up.answer->content_length()) length = *up.answer->content_length();
  const bool bodiless = status == 204 || status == 304 || status < 200;
  up.chunked = !bodiless && !length && !http_1_0_ && proxied.head.method != "HEAD";
  std::string text = headText(makeAnswer(up, proxied.body), bodiless ? std::nullopt : length, up.chunked);
  constexpr std::string_view kClose = "Connection: close\r\n";
  if (up.tunnel) text.erase(text.find(kClose), kClose.size());
  return text;
}

}  // namespace caisson::http
