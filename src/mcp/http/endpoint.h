// MCP over HTTP: which requests are accepted, which era they belong to, and how an answer becomes a response.
//
// The server listens on loopback, but programs of other users, and any web page through the browser, can connect. So it
// requires the token, and Host and Origin must name loopback, which stops DNS rebinding to 127.0.0.1.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "mcp/http/server.h"
#include "mcp/http/stream.h"
#include "mcp/server/server.h"

namespace caisson::mcp {

class HttpEndpoint {
 public:
  /// An empty token disables the check.
  HttpEndpoint(Server& server, std::string token) : server_(server), token_(std::move(token)) {}
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  /// Whether the request comes from this machine and has the token; if not, answers it with an error.
  bool admit(const HttpRequest& request, HttpConnection& connection) const;
  /// Handles an admitted request.
  void handle(const HttpRequest& request, HttpConnection& connection);

  static constexpr std::string_view kPath = "/mcp";

 private:
  static constexpr std::size_t kMaxSessions = 1024;
  static constexpr std::size_t kKeptStreams = 32;  ///< per session, for clients that reconnect
  static constexpr std::chrono::hours kIdleSession{1};

  /// A client of the versions before 2026-07-28.
  struct Session {
    std::shared_ptr<Client> client = std::make_shared<Client>();
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<HttpStream>> streams;  ///< by name
    std::size_t next_stream = 1;
    std::chrono::steady_clock::time_point used;  ///< its last request
  };
  using SessionPointer = std::shared_ptr<Session>;

  /// Parses the message and passes it to one of the next two, or answers 400 or 415.
  void post(const HttpRequest& request, HttpConnection& connection);
  /// Without a session. Cancels the call if the client disconnects before the answer.
  void postModern(const HttpRequest& request, HttpConnection& connection, Message message);
  /// In a session, which `initialize` begins. A client that disconnects may fetch the answer later.
  void postLegacy(const HttpRequest& request, HttpConnection& connection, Message message);
  /// Opens the session's stream for messages that belong to no request, or resumes a broken one (`Last-Event-ID`).
  void get(const HttpRequest& request, HttpConnection& connection);
  /// DELETE: ends the session and cancels its calls.
  void remove(const HttpRequest& request, HttpConnection& connection);

  /// Returns the session that the request names; if there is none, answers the request with an error.
  SessionPointer sessionOf(const HttpRequest& request, HttpConnection& connection);
  /// Registers a session and returns its new id; empty if there are too many. Removes sessions that were idle for long.
  std::string newSession(const SessionPointer& session);
  /// Adds a stream to the session, which keeps the last kKeptStreams.
  static std::shared_ptr<HttpStream> openStream(Session& session);

  /// `closed`: by the peer, or because the server stops; `detached`: before the answer, which the peer fetches later.
  enum class Ended : std::uint8_t { answered, closed, detached };
  /// Sends the stream's events after `number`, then new ones, until the answer. If the answer is the only event and
  /// comes soon, it is sent as plain JSON instead of a stream, unless `always_stream`.
  Ended pump(const HttpRequest& request, HttpConnection& connection, HttpStream& stream, std::size_t number, Era era,
             const HttpConnection::Headers& headers, bool always_stream);

  Server& server_;
  std::string token_;
  std::mutex mutex_;
  std::map<std::string, SessionPointer, std::less<>> sessions_;
};

}  // namespace caisson::mcp
