// Where the messages that belong to one request go: the standard output of a stdio server, or the response of one POST.
#pragma once

#include "mcp/json.h"

namespace caisson::mcp {

class Channel {
 public:
  virtual ~Channel() = default;
  /// Sends one message. Safe from any thread; messages are never mixed. A peer that is gone is no error: what ends its
  /// calls is the transport, which notices first. Notifications may be dropped when the peer does not read.
  virtual void send(const Json& message) = 0;
  /// Ends the stream before the answer; the peer fetches that later. Only resumable streams can (HTTP before
  /// 2026-07-28); others go on.
  virtual void disconnect() {}
};

}  // namespace caisson::mcp
