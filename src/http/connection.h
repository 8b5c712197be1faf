// One connection: a coroutine on the event loop that waits in one place only, pause(). Reads, writes, worker threads
// and other events wake it; it then looks at the state. Internal: includes Asio and Beast.
#pragma once

#include "http/loop.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <condition_variable>
#include <mutex>

#include "http/parser.h"
#include "http/websocket.h"

namespace caisson::http {

class Connection final : public BodyReader, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, Socket socket, Peer peer, asio::ssl::context* tls);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Serves requests until the connection ends.
  asio::awaitable<void> serve();
  /// The server stops: ends the connection if it is idle or streams, else after the current response.
  void stop() { wake(); }
  /// Closes the connection at once.
  void abort();
  [[nodiscard]] const Peer& peer() const { return peer_; }
  /// A request of a known caller came: the connection may be idle for longer. While it is idle it is closed only to
  /// make room, and only if no other caller has more connections. Without `caller` (the owner) it is never closed for
  /// that.
  void setKnown(const std::string& caller = {});

  /// BodyReader: called by the worker of a request with a streamed body.
  Result<std::size_t> read(std::span<char> into) override;

 private:
  using Parser = MessageParser<true>;
  using TimePoint = Clock::time_point;
  struct Job;
  using JobPointer = std::shared_ptr<Job>;

  /// Closes the socket and removes this from the loop's lists. On the loop, at the end: the last reference may be a
  /// worker's, so the destructor must not do it.
  void unregister();
  /// Enters this into Loop::holders, or removes it.
  void addToHolder();
  void removeFromHolder();
  /// The same for Holder::idle.
  void beginIdle();
  void endIdle();
  /// Waits for wake(). False if the deadline passed first.
  asio::awaitable<bool> pause(TimePoint deadline);
  void wake();
  /// Calls wake() from any thread, as long as the connection exists.
  std::function<void()> remoteWake();

  static constexpr std::size_t kMaxInbox = std::size_t{256} << 10U;
  /// Begins to receive, unless that is going on or `inbox_` has `most` bytes. Received bytes are appended to `inbox_`.
  void startRead(std::size_t most = kMaxInbox);
  void received(BoostError code, std::string_view bytes);
  /// Sends everything; false if the peer is gone or too slow. `bytes` must stay valid until it returns.
  /// `end`: when everything must be sent.
  asio::awaitable<bool> write(std::string_view bytes, TimePoint end = TimePoint::max());
  asio::awaitable<bool> waitWritable();
  asio::awaitable<bool> handshake();

  /// One request and its response. False: the connection ends.
  asio::awaitable<bool> serveRequest();
  /// Waits for a complete head in `inbox_` and removes it. Empty: the connection ends.
  asio::awaitable<std::string> receiveHead();
  /// Moves body bytes from `inbox_` to `parser.body`. False if they are malformed.
  bool feedBody(Parser& parser);
  /// Receives a whole body; returns the status of the failure, or 0.
  asio::awaitable<int> receiveBody(Parser& parser, std::uint64_t limit);
  /// Runs the handler on a worker and waits for it.
  asio::awaitable<bool> dispatch(Job& job, const JobPointer& shared, Parser& parser);
  /// Passes body bytes to read() as they arrive.
  void pumpBody(Parser& parser, std::uint64_t limit, TimePoint& progress);
  void failBody(std::string reason);

  asio::awaitable<bool> respond(const RequestHead& head, Response& response);
  asio::awaitable<bool> sendFile(FileBody& body);
  asio::awaitable<bool> sendSource(const std::shared_ptr<Source>& source, bool chunked);
  asio::awaitable<bool> relaySocket(const RequestHead& head, SocketBody& body, const Headers& headers);
  /// Runs SocketBody::on_end on a worker, and returns its result.
  asio::awaitable<std::string> finishRelay(SocketBody& body);
  /// Sends the result of a relay and closes the WebSocket.
  asio::awaitable<void> endRelay(SocketBody& body, CloseCode code);
  /// Refuses a request that needs another descriptor on the loop: no epoll watch is left for it.
  asio::awaitable<void> refuseWatch();
  struct Proxied;
  asio::awaitable<bool> proxy(const RequestHead& head, ProxyBody& body, Parser& parser);
  asio::awaitable<void> runProxy(Proxied& proxied, const std::function<void()>& wake_up);
  /// Moves received bytes to the upstream's buffer. False if the body is malformed.
  bool forwardBody(Proxied& proxied);
  std::string answerHead(Proxied& proxied);
  /// Sends a response that closes the connection, and drops what the peer still sends: closing with unread bytes resets
  /// the connection, and the peer may lose the response.
  asio::awaitable<void> refuse(Response response);
  asio::awaitable<void> linger();
  std::string headText(const Response& response, std::optional<std::uint64_t> length, bool chunked) const;

  Loop& loop_;
  Socket socket_;
  std::unique_ptr<asio::ssl::stream<Socket&>> tls_;
  std::unique_ptr<char[]> tls_buffer_;
  Peer peer_;
  std::uint64_t number_;  ///< in Loop::newcomers
  bool known_ = false;
  std::string holder_;      ///< in Loop::holders; empty: none
  std::uint64_t idle_ = 0;  ///< in Holder::idle; 0: not idle
  asio::steady_timer event_;
  bool woken_ = false;
  std::string inbox_;
  bool reading_ = false;
  bool ended_ = false;  ///< end of input, or an error
  std::string method_;  ///< of the request that is being served; empty: its head is not read yet
  std::string caller_;  ///< of that request (Admission)
  bool keep_alive_ = true;
  bool http_1_0_ = false;
  bool body_is_next_ = false;  ///< a body is unread: the next bytes are not a request
  std::unique_ptr<Parser> parser_;

  std::mutex body_mutex_;
  std::condition_variable body_changed_;
  std::string body_ready_;
  std::size_t body_taken_ = 0;  ///< bytes of body_ready_ that were read
  std::uint64_t body_total_ = 0, body_mark_ = 0;
  bool body_end_ = false;
  std::string body_failure_;
};

}  // namespace caisson::http
