#include "mcp/http/answer.h"

#include <poll.h>

#include <array>
#include <chrono>

#include "mcp/protocol/message.h"

namespace caisson::mcp {
namespace {

using Clock = std::chrono::steady_clock;

/// Proxies and clients time out after a long silence.
constexpr std::chrono::milliseconds kKeepAlive{15'000};
constexpr std::size_t kPiece = std::size_t{64} << 10U;

/// A JSON-RPC error for a request that was not understood has its own HTTP status. Older versions use only 200.
int statusOf(const HttpStream::Event& event, ProtocolRevision revision) {
  if (revision == ProtocolRevision::legacy) return 200;
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

std::string_view versionOf(const http::RequestHead& head) {
  const std::string* version = head.header("mcp-protocol-version");
  return version == nullptr ? kUnnamedHttpVersion : std::string_view(*version);
}

/// Calls a function at its end, unless it is told that there is no need.
class OnAbandon {
 public:
  explicit OnAbandon(std::function<void()> act) : act_(std::move(act)) {}
  ~OnAbandon() {
    if (act_) act_();
  }
  OnAbandon(const OnAbandon&) = delete;
  OnAbandon& operator=(const OnAbandon&) = delete;
  void dismiss() { act_ = nullptr; }

 private:
  std::function<void()> act_;
};

class EventStream final : public http::Source {
 public:
  EventStream(std::shared_ptr<HttpStream> stream, std::size_t after, std::string first,
              std::shared_ptr<OnAbandon> abandon)
      : stream_(std::move(stream)), number_(after), first_(std::move(first)), abandon_(std::move(abandon)) {}
  ~EventStream() override { stream_->onWake(nullptr); }

  void onStart(std::function<void()> wake) override { stream_->onWake(std::move(wake)); }
  Next next(std::string& piece) override {
    piece = std::exchange(first_, "");
    sending_.clear();  // the peer has the last piece
    while (piece.size() < kPiece) {
      const auto event = stream_->after(number_);
      if (!event) break;
      number_ = event->number;
      if (event->memory) sending_.push_back(event->memory);
      piece += "event: message\n";
      if (!stream_->name().empty()) piece += "id: " + stream_->name() + "-" + std::to_string(number_) + "\n";
      piece += "data: " + event->text + "\n\n";
    }
    if (!piece.empty()) last_ = Clock::now();
    if (stream_->endsAt(number_)) {
      abandon_->dismiss();
      stream_->dropSent();
      return {State::end};
    }
    if (stream_->takeDisconnect()) return {State::end};
    if (!piece.empty()) return {State::data};
    if (Clock::now() - last_ >= kKeepAlive) {
      piece = ": still here\n\n";
      last_ = Clock::now();
    }
    return {State::wait, kKeepAlive};
  }

 private:
  std::shared_ptr<HttpStream> stream_;
  std::size_t number_;
  std::string first_;
  std::shared_ptr<OnAbandon> abandon_;
  std::vector<std::shared_ptr<void>> sending_;  ///< memory of the answers in the piece that is being sent
  Clock::time_point last_ = Clock::now();
};

/// Waits for the first event. False if the peer is gone.
bool waitForFirst(const http::Request& request, const HttpStream& stream) {
  std::array<pollfd, 2> ends{pollfd{stream.descriptor(), POLLIN, 0}, pollfd{request.cancel_descriptor, POLLIN, 0}};
  ::poll(ends.data(), ends.size(), static_cast<int>(kKeepAlive.count()));
  return ends[1].revents == 0;
}

}  // namespace

http::Response answerFrom(http::Request& request, const std::shared_ptr<HttpStream>& stream, AnswerOptions options) {
  auto abandon = std::make_shared<OnAbandon>(std::move(options.on_abandon));
  if (!options.always_stream) {
    if (!waitForFirst(request, *stream)) return {.close = true};
    const auto event = stream->after(options.after);
    if (event && event->response) {
      abandon->dismiss();
      request.context = event->memory;  // which the connection keeps until the peer has the response
      stream->dropSent();
      http::Response response{
          .status = statusOf(*event, options.revision), .headers = std::move(options.headers), .body = event->text};
      response.headers.emplace_back("Content-Type", "application/json");
      return response;
    }
  }
  std::string first;
  // The first event has no message: its id lets the client resume if the connection breaks.
  if (options.revision == ProtocolRevision::legacy && versionOf(request.head) >= "2025-11-25")
    first = "id: " + stream->name() + "-" + std::to_string(options.after) + "\nretry: 500\ndata: \n\n";
  http::Response response{.headers = std::move(options.headers)};
  response.headers.emplace_back("Content-Type", "text/event-stream");
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.body = std::make_shared<EventStream>(stream, options.after, std::move(first), std::move(abandon));
  return response;
}

}  // namespace caisson::mcp
