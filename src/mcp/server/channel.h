// The destination of a request's messages: the standard output of a stdio server, or the response of one POST.
#pragma once

#include <memory>

#include "mcp/protocol/json.h"

namespace caisson::mcp {

class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends one message. Thread-safe; messages are never interleaved. A disconnected peer is not an error: the transport
  /// notices it first and cancels its calls. Notifications may be dropped if the peer does not read.
  virtual void send(const Json& message) = 0;
  /// Sends the answer of a call. `memory` is its share of the limit for unread answers: a channel that returns before
  /// the peer has read the answer keeps it as long as the answer.
  virtual void sendAnswer(const Json& message, std::shared_ptr<void> memory) {
    static_cast<void>(memory);
    send(message);
  }
  /// Ends the stream before the answer; the peer fetches that later. Only resumable streams support it (HTTP before
  /// 2026-07-28); others ignore it.
  virtual void disconnect() {}
};

}  // namespace caisson::mcp
