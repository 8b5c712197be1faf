// MCP over HTTP: which requests are accepted, which revision they belong to, and how an answer becomes a response.
//
// The server listens on loopback, but programs of other users, and any web page through the browser, can connect. So it
// requires the token, and Host and Origin must name loopback, which stops DNS rebinding to 127.0.0.1.
#pragma once

#include <chrono>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "http/message.h"
#include "mcp/http/stream.h"
#include "mcp/server/memory_limit.h"
#include "mcp/server/server.h"

namespace caisson::mcp {

class HttpEndpoint final : public http::Handler {
 public:
  /// An empty token disables the check.
  HttpEndpoint(Server& server, std::string token) : server_(server), token_(std::move(token)) {}
  ~HttpEndpoint() override;
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  /// Whether the request comes from this machine and has the token, and there is memory for its body.
  http::Admission admit(const http::RequestHead& head) override;
  http::Response handle(http::Request& request) override;
  http::Response failure(int status, std::string_view reason) override;

  static constexpr std::string_view kPath = "/mcp";

 private:
  static constexpr std::size_t kMaxBody = std::size_t{8} << 20U;
  static constexpr std::size_t kMaxBodies = std::size_t{128} << 20U;  ///< all that are received or parsed now
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
  http::Response post(http::Request& request);
  /// Without a session. Cancels the call if the client disconnects before the answer.
  http::Response postModern(http::Request& request, Message message);
  /// In a session, which `initialize` begins. A client that disconnects may fetch the answer later.
  http::Response postLegacy(http::Request& request, Message message);
  /// Opens the session's stream for messages that belong to no request, or resumes a broken one (`Last-Event-ID`).
  http::Response get(http::Request& request);
  /// DELETE: ends the session and cancels its calls.
  http::Response remove(http::Request& request);

  /// The session that the request names, or the response if there is none.
  std::expected<SessionPointer, http::Response> sessionOf(const http::Request& request);
  /// Registers a session and returns its new id; empty if there are too many. Removes sessions that were idle for long.
  std::string newSession(const SessionPointer& session);
  /// Adds a stream to the session, which keeps the last kKeptStreams.
  static std::shared_ptr<HttpStream> openStream(Session& session);

  Server& server_;
  std::string token_;
  MemoryLimit bodies_{kMaxBodies};
  std::mutex mutex_;
  std::map<std::string, SessionPointer, std::less<>> sessions_;
};

}  // namespace caisson::mcp
