// Converts a stream of messages to an HTTP response: plain JSON if there is only the answer, otherwise server-sent
// events.
#include "mcp/http/endpoint.h"

namespace caisson::mcp {
namespace {

constexpr std::chrono::milliseconds kKeepAlive{15'000};

/// A JSON-RPC error for a request that was not understood has its own HTTP status. Older versions use only 200.
int statusOf(const HttpStream::Event& event, Era era) {
  if (era == Era::legacy) return 200;
  switch (event.error_code) {
    case code::kMethodNotFound: return 404;
    case code::kInvalidRequest:
    case code::kInvalidParams:
    case code::kHeaderMismatch:
    case code::kMissingCapability:
    case code::kUnsupportedVersion: return 400;
    default: return 200;
  }
}

std::string_view versionOf(const HttpRequest& request) {
  const std::string* version = request.header("mcp-protocol-version");
  return version == nullptr ? kUnnamedHttpVersion : std::string_view(*version);
}

std::string eventText(const HttpStream& stream, const HttpStream::Event& event) {
  std::string text = "event: message\n";
  if (!stream.name().empty()) text += "id: " + stream.name() + "-" + std::to_string(event.number) + "\n";
  return text + "data: " + event.text + "\n\n";
}

}  // namespace

HttpEndpoint::Ended HttpEndpoint::pump(const HttpRequest& request, HttpConnection& connection, HttpStream& stream,
                                       std::size_t number, Era era, const HttpConnection::Headers& headers,
                                       bool always_stream) {
  bool streaming = false;
  const auto begin = [&] {
    HttpConnection::Headers all = headers;
    all.emplace_back("Cache-Control", "no-cache");
    all.emplace_back("X-Accel-Buffering", "no");
    streaming = true;
    if (!connection.beginStream(request, "text/event-stream", all)) return false;
    // The first event has no message: its id lets the client resume if the connection breaks.
    if (era == Era::modern || versionOf(request) < "2025-11-25") return true;
    return connection.writePiece("id: " + stream.name() + "-" + std::to_string(number) + "\nretry: 500\ndata: \n\n");
  };
  if (always_stream && !begin()) return Ended::closed;
  for (;;) {
    stream.clearWake();
    while (const auto event = stream.after(number)) {
      number = event->number;
      if (event->response && !streaming) {
        connection.respond(request, statusOf(*event, era), "application/json", event->text, headers);
        return Ended::answered;
      }
      if (!streaming && !begin()) return Ended::closed;
      if (!connection.writePiece(eventText(stream, *event))) return Ended::closed;
    }
    if (stream.endsAt(number)) {
      if (streaming) connection.endStream();
      return Ended::answered;
    }
    if (stream.takeDisconnect()) {
      if (!streaming && !begin()) return Ended::closed;
      connection.endStream();
      return Ended::detached;
    }
    switch (connection.wait(stream.descriptor(), kKeepAlive)) {
      case HttpConnection::Event::woken: break;
      case HttpConnection::Event::closed: return Ended::closed;
      case HttpConnection::Event::stopping:
        if (streaming) connection.endStream();
        return Ended::closed;
      case HttpConnection::Event::timeout:
        // Proxies and clients time out after a long silence. A call that would be answered as plain JSON becomes a
        // stream.
        if (!streaming && !begin()) return Ended::closed;
        if (!connection.writePiece(": still here\n\n")) return Ended::closed;
        break;
    }
  }
}

}  // namespace caisson::mcp
