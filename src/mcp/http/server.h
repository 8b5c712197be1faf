// A small HTTP/1.1 server on loopback: one thread per connection, every blocking call with a timeout.
//
// Our own code instead of a library: one path, five methods, bodies with a length. A thread per connection instead of
// an event loop: a tool call needs a thread anyway while its command runs, and connections are few and bounded.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "mcp/http/request.h"
#include "sys/fd.h"

namespace caisson::mcp {

/// One accepted connection, passed to a handler. Only its own thread uses it.
class HttpConnection {
 public:
  using Headers = std::vector<std::pair<std::string_view, std::string>>;

  HttpConnection(sys::Fd socket, int stop) : socket_(std::move(socket)), stop_(stop) {}

  // These return false if the peer is gone or reads nothing for 30 seconds.
  /// Sends a complete response. `keep_alive` as in the request.
  bool respond(const HttpRequest& request, int status, std::string_view type, std::string_view body,
               const Headers& headers = {});
  /// Starts a response of unknown length; pieces follow, then endStream().
  bool beginStream(const HttpRequest& request, std::string_view type, const Headers& headers);
  bool writePiece(std::string_view piece);
  bool endStream();

  enum class Event : std::uint8_t { woken, closed, stopping, timeout };
  /// Waits until `descriptor` is readable, the peer closed, the server stops, or `timeout` has passed.
  Event wait(int descriptor, std::chrono::milliseconds timeout) const;

 private:
  friend class HttpServer;
  bool write(std::string_view bytes);
  enum class Read : std::uint8_t { some, end, stopping, timeout };
  /// Waits for input and replaces `into` by it; after a signal `into` stays as it is, with the result `some`.
  Read read(std::string& into, std::chrono::milliseconds timeout) const;
  /// Reads some of the remaining input of a rejected peer: closing with unread bytes resets the connection, and the
  /// peer may lose the answer.
  void discardInput() const;

  sys::Fd socket_;
  int stop_;
  bool chunked_ = false;
};

class HttpServer {
 public:
  using Handler = std::function<void(const HttpRequest&, HttpConnection&)>;
  /// Decides by its head alone whether a request may send its body, and again when it is complete; answers the request
  /// if not. Bodies are buffered only after that: otherwise unauthenticated peers could make the server hold 8 MiB per
  /// connection.
  using Admission = std::function<bool(const HttpRequest& head, HttpConnection&)>;

  /// `address`: PORT, HOST:PORT or [HOST]:PORT; the host must be a loopback address. Port 0 selects a free one.
  static Result<sys::Fd> listen(std::string_view address);
  /// The port of a listening socket.
  static int portOf(int socket);

  HttpServer(sys::Fd socket, Admission admission, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Accepts connections until `until` becomes readable; those over kMaxConnections get a 503.
  void serve(int until);
  /// Stops every connection and waits for them.
  void stop();

 private:
  static constexpr std::size_t kMaxConnections = 512;
  /// The thread of one connection: reads requests and passes them to the handler until the connection ends.
  void converse(sys::Fd socket);

  sys::Fd socket_;
  sys::Fd stop_;
  Admission admission_;
  Handler handler_;
  std::mutex mutex_;
  std::condition_variable gone_;
  std::size_t connections_ = 0;
};

}  // namespace caisson::mcp
