// How a connection sends responses: whole, from a file, from a source.
#include <sys/sendfile.h>

#include <cerrno>
#include <ctime>

#include <boost/asio/post.hpp>

#include "http/connection.h"

namespace caisson::http {
namespace {

/// Bytes per second at which a peer must read a response that is held in memory.
constexpr std::size_t kLeastRate = std::size_t{64} << 10U;

std::string httpDate() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, size};
}

std::string chunkHead(std::size_t size) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (; size > 0; size /= 16) text.insert(text.begin(), kHex[size % 16]);
  return text + "\r\n";
}

/// Counts a stream as long as it exists, also if an exception ends it.
struct CountedStream {
  explicit CountedStream(ServerStats& server_stats) : stats(server_stats) { ++stats.streams; }
  ~CountedStream() { --stats.streams; }
  CountedStream(const CountedStream&) = delete;
  CountedStream& operator=(const CountedStream&) = delete;
  ServerStats& stats;
};

}  // namespace

std::string Connection::headText(const Response& response, std::optional<std::uint64_t> length, bool chunked) const {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " + std::string(reasonPhrase(response.status)) +
                     "\r\nDate: " + httpDate() + "\r\n";
  for (const auto& [name, value] : response.headers) {
    // A value could come from a file name or a sandbox; a line break in it would begin another header.
    if (value.find_first_of("\r\n") != std::string::npos || value.find('\0') != std::string::npos) continue;
    text.append(name).append(": ").append(value).append("\r\n");
  }
  if (length) text += "Content-Length: " + std::to_string(*length) + "\r\n";
  if (chunked) text += "Transfer-Encoding: chunked\r\n";
  if (!keep_alive_) text += "Connection: close\r\n";
  return text + "\r\n";
}

asio::awaitable<bool> Connection::respond(const RequestHead& head, Response& response) {
  if (loop_.stopping || response.close) keep_alive_ = false;
  const bool head_only = head.method == "HEAD";
  if (auto* text = std::get_if<std::string>(&response.body)) {
    const bool bodiless = response.status == 204 || response.status == 304;
    std::string bytes = headText(response, bodiless ? std::nullopt : std::optional(text->size()), false);
    constexpr std::size_t kSmall = std::size_t{64} << 10U;
    const bool apart = text->size() > kSmall;  // not a second copy of a large one
    if (!head_only && !bodiless && !apart) bytes += *text;
    bool sent = co_await write(bytes);
    if (sent && !head_only && !bodiless && apart) {
      // It is held in memory until it is sent, so a slow reader has less time than for a file.
      const TimePoint end = Clock::now() + loop_.limits.write_timeout + std::chrono::seconds(text->size() / kLeastRate);
      sent = co_await write(*text, end);
    }
    co_return sent&& keep_alive_;
  }
  if (auto* file = std::get_if<FileBody>(&response.body)) {
    const std::string bytes = headText(response, file->length, false);
    bool sent = co_await write(bytes);
    if (sent && !head_only) sent = co_await sendFile(*file);
    co_return sent&& keep_alive_;
  }
  if (auto* source = std::get_if<std::shared_ptr<Source>>(&response.body)) {
    if (http_1_0_) keep_alive_ = false;
    const std::string bytes = headText(response, std::nullopt, !http_1_0_);
    bool sent = co_await write(bytes);
    if (sent && !head_only) {
      const CountedStream counted(loop_.stats);
      sent = co_await sendSource(*source, !http_1_0_);
    }
    co_return sent&& keep_alive_;
  }
  if (auto* socket = std::get_if<SocketBody>(&response.body)) {
    const CountedStream counted(loop_.stats);
    co_await relaySocket(head, *socket, response.headers);
    co_return false;
  }
  setKnown();  // the peer was given the address of a preview
  co_await proxy(head, std::get<ProxyBody>(response.body), *parser_);
  co_return false;
}

asio::awaitable<bool> Connection::sendFile(FileBody& body) {
  constexpr std::size_t kPiece = std::size_t{2} << 20U;
  auto offset = static_cast<off_t>(body.offset);
  while (body.length > 0) {
    if (tls_) {
      std::string piece(std::min<std::uint64_t>(body.length, kPiece / 8), '\0');
      const ssize_t got = ::pread(body.file.get(), piece.data(), piece.size(), offset);
      if (got <= 0) co_return false;
      piece.resize(static_cast<std::size_t>(got));
      const bool sent = co_await write(piece);
      if (!sent) co_return false;
      offset += got;
      body.length -= static_cast<std::uint64_t>(got);
      continue;
    }
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(body.length, kPiece));
    const ssize_t sent = ::sendfile(socket_.native_handle(), body.file.get(), &offset, wanted);
    if (sent == 0 || (sent < 0 && errno != EAGAIN && errno != EINTR)) co_return false;  // shorter than promised
    if (sent > 0) {
      body.length -= static_cast<std::uint64_t>(sent);
      loop_.stats.bytes_sent += static_cast<std::uint64_t>(sent);
    }
    if (sent == static_cast<ssize_t>(wanted)) {
      // Other connections come first: a fast reader must not occupy the loop.
      asio::post(loop_.io, [self = shared_from_this()] { self->wake(); });
      co_await pause(Clock::now() + loop_.limits.write_timeout);
      continue;
    }
    const bool writable = co_await waitWritable();
    if (!writable) co_return false;
  }
  co_return true;
}

asio::awaitable<bool> Connection::sendSource(const std::shared_ptr<Source>& source, bool chunked) {
  struct Step {
    std::string piece;
    Source::Next next;
    bool done = false;
  };
  // Not inferred from pause(): one may be woken by the worker and the source at once.
  auto notified = std::make_shared<std::atomic<bool>>(false);
  source->onStart([notified, wake_up = remoteWake()] {
    notified->store(true);
    wake_up();
  });
  for (;;) {
    auto step = std::make_shared<Step>();
    notified->store(false);
    const auto work = [self = shared_from_this(), source, step] {
      step->next = source->next(step->piece);
      asio::post(self->loop_.io, [self, step] {
        step->done = true;
        self->wake();
      });
    };
    const bool accepted = loop_.workers(source->lane()).run(work, caller_);
    if (!accepted) {  // busy: later
      co_await pause(Clock::now() + std::chrono::milliseconds(100));
      continue;
    }
    while (!step->done) {
      startRead(loop_.limits.head);  // streams last for long: a peer must not make the server keep what it sends
      co_await pause(Clock::now() + std::chrono::hours(24));
    }
    if (!step->piece.empty()) {
      std::string bytes = chunked ? chunkHead(step->piece.size()) + step->piece + "\r\n" : std::move(step->piece);
      // It is held in memory until it is sent.
      const TimePoint end = Clock::now() + loop_.limits.write_timeout + std::chrono::seconds(bytes.size() / kLeastRate);
      const bool sent = co_await write(bytes, end);
      if (!sent) co_return false;
    }
    if (ended_) co_return false;
    if (loop_.stopping && step->next.state == Source::State::wait) {
      if (!source->mayEndEarly()) co_return false;
      keep_alive_ = false;
      break;
    }
    if (step->next.state == Source::State::abort) co_return false;
    if (step->next.state == Source::State::end) break;
    if (step->next.state == Source::State::wait && !notified->load()) {
      startRead(loop_.limits.head);
      co_await pause(Clock::now() + step->next.pause);
      if (ended_) co_return false;
    }
  }
  if (!chunked) co_return true;
  co_return co_await write("0\r\n\r\n");
}

asio::awaitable<void> Connection::refuseWatch() {
  Response busy = loop_.handler.failure(503, kNoWatches);
  busy.headers.emplace_back("Retry-After", "1");
  co_await refuse(std::move(busy));
}

asio::awaitable<void> Connection::refuse(Response response) {
  keep_alive_ = false;
  RequestHead none;
  none.method = method_;  // the response to HEAD has no body
  const bool text = std::holds_alternative<std::string>(response.body);
  if (!text) response.body = std::string();
  co_await respond(none, response);
  co_await linger();
}

/// Drops what a client still sends, or the kernel would reset the connection and the client lose the response.
asio::awaitable<void> Connection::linger() {
  constexpr std::size_t kMaxDropped = std::size_t{64} << 20U;
  BoostError ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  const TimePoint deadline = Clock::now() + std::chrono::seconds(1);
  for (std::size_t dropped = 0; dropped < kMaxDropped && !ended_ && !loop_.stopping;) {
    dropped += inbox_.size();
    inbox_.clear();
    startRead();
    const bool woken = co_await pause(deadline);
    if (!woken) break;
  }
}

}  // namespace caisson::http
