// Requests and responses as values, without anything of the event loop.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "http/target.h"
#include "sys/fd.h"

namespace caisson::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// Who sent a request.
struct Peer {
  std::string address;       ///< "127.0.0.1", "::1", or "unix"
  std::string group;         ///< addresses that one peer can choose from: 127.0.0.0/8, or the /64 of an IPv6 address
  std::optional<uid_t> uid;  ///< of the process at the other end of a unix socket
  bool is_owner = false;     ///< that process has our uid and is in our user namespace
  std::size_t listener = 0;  ///< index in ServerOptions::listeners
  bool tls = false;
};

struct RequestHead {
  std::string method;
  Target target;
  Headers headers;  ///< names in lower case, values without outer blanks
  Peer peer;
  std::optional<std::uint64_t> content_length;  ///< unset: no body, or a chunked one
  bool has_body = false;
  bool upgrades = false;  ///< a well-formed WebSocket handshake
  /// The first header of that name (in lower case), or null.
  [[nodiscard]] const std::string* header(std::string_view name) const;
};

/// Which threads handle a request. Long ones wait for commands; they must not delay short ones. Previews need no token,
/// so they must not delay anything else.
enum class Lane : std::uint8_t {
  quick,     ///< reads state; never waits for a sandbox
  control,   ///< may start a sandbox or wait for its lock
  transfer,  ///< waits for a body, or works for long
  command,   ///< waits for a command
  preview,
};

/// A response body that is produced piece by piece. Called by one worker at a time, never while the peer's buffer is
/// full or the source waits, so a slow reader occupies no thread.
class Source {
 public:
  enum class State : std::uint8_t {
    data,  ///< a piece was appended
    wait,  ///< nothing yet: try again after `pause`, or earlier if wake() was called
    end,
    abort,  ///< the body is incomplete: close the connection, so that the peer can tell
  };
  struct Next {
    State state = State::end;
    std::chrono::milliseconds pause{0};
  };
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  /// Appends at most about 64 KiB to `piece`.
  virtual Next next(std::string& piece) = 0;
  /// The threads that call next().
  [[nodiscard]] virtual Lane lane() const { return Lane::quick; }
  /// Whether the body counts as complete if the server stops while it waits: a stream of events, not a file.
  [[nodiscard]] virtual bool mayEndEarly() const { return true; }
  /// Called once, before next(). `wake` may be called from any thread, also after the source was destroyed.
  virtual void onStart(std::function<void()> /*wake*/) {}
};

/// A part of an open file. If the file gets shorter meanwhile, the connection is closed.
struct FileBody {
  sys::Fd file;
  std::uint64_t offset = 0, length = 0;
};

/// A WebSocket whose binary messages are what is read from, and written to, a descriptor (a pty, a socket).
struct SocketBody {
  sys::Fd descriptor;                                  ///< non-blocking
  std::function<void(std::string_view text)> on_text;  ///< called on the loop for text messages; must not block
  /// Called on a worker when the descriptor has ended; its result is sent as the last text message.
  std::function<std::string()> on_end;
  /// Called on the loop every few seconds; must not block. False: the relay ends.
  std::function<bool()> may_continue;
};

/// Passes the request on to a server on this machine, and its response back.
struct ProxyBody {
  std::uint16_t port = 0;                     ///< on 127.0.0.1
  Headers request_headers;                    ///< complete: nothing of the original is added
  std::string target;                         ///< path and query
  Headers response_headers;                   ///< added to the response
  std::vector<std::string> dropped_response;  ///< names in lower case
};

struct Response {
  int status = 200;
  Headers headers;
  std::variant<std::string, FileBody, std::shared_ptr<Source>, SocketBody, ProxyBody> body;
  bool close = false;  ///< close the connection afterwards
};

/// The decision about a request by its head alone.
struct Admission {
  /// Sent without a thread and without reading the body: a refusal, or a response that needs no work. The connection is
  /// closed if there is a body.
  std::optional<Response> response;
  std::uint64_t body_limit = 0;  ///< more is answered with 413
  bool stream_body = false;      ///< the handler reads the body with Request::readBody()
  Lane lane = Lane::quick;
  bool known = false;             ///< who calls is known, so the connection may stay open without requests
  std::string caller;             ///< who shares threads (Workers) and connections with others; empty: without limits
  std::shared_ptr<void> context;  ///< handed on to the handler
};

/// The body of a request that is handled while it arrives.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  /// Waits for bytes; 0 at the end. An error if the peer is gone or too slow, or the body is malformed or too large.
  virtual Result<std::size_t> read(std::span<char> into) = 0;
};

struct Request {
  RequestHead head;
  std::string body;              ///< unless the admission chose stream_body
  BodyReader* stream = nullptr;  ///< with stream_body
  std::shared_ptr<void> context;
  int cancel_descriptor = -1;  ///< readable once the peer is gone or the server stops
};

class Handler {
 public:
  virtual ~Handler() = default;
  /// Runs on the event loop: must not block.
  virtual Admission admit(const RequestHead& head) = 0;
  /// Runs on a worker thread.
  virtual Response handle(Request& request) = 0;
  /// The response to a request that did not reach handle(): malformed, too large, too slow, server busy.
  virtual Response failure(int status, std::string_view reason) = 0;
};

/// The standard reason phrase.
std::string_view reasonPhrase(int status);

}  // namespace caisson::http
