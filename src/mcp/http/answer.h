// Converts a stream of messages to an HTTP response: plain JSON if there is only the answer, otherwise server-sent
// events.
#pragma once

#include <functional>
#include <memory>

#include "http/message.h"
#include "mcp/http/stream.h"
#include "mcp/protocol/version.h"

namespace caisson::mcp {

struct AnswerOptions {
  ProtocolRevision revision = ProtocolRevision::modern;
  std::size_t after = 0;       ///< send the events after this one
  bool always_stream = false;  ///< also if the answer is the only event
  http::Headers headers;
  std::function<void()> on_abandon;  ///< the connection ended before the answer was sent
};

/// Waits up to 15 seconds for the first message: an answer becomes plain JSON, anything else begins a stream.
http::Response answerFrom(http::Request& request, const std::shared_ptr<HttpStream>& stream, AnswerOptions options);

}  // namespace caisson::mcp
