// A WebSocket connected to a descriptor.
#include <algorithm>
#include <cerrno>
#include <optional>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

#include "http/connection.h"
#include "http/websocket.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMaxPending = std::size_t{256} << 10U;
constexpr std::chrono::seconds kPingEvery{30};
constexpr std::chrono::seconds kCheckEvery{2};

/// The descriptor's side: readiness as flags, since the connection waits in one place only.
struct Wire {
  explicit Wire(asio::io_context& io) : stream(io) {}
  asio::posix::stream_descriptor stream;
  bool waiting_read = false, waiting_write = false;
  bool readable = false, ended = false;
  std::string pending;  ///< from the client, not yet written
};

/// False, and the descriptor is closed, if it cannot be registered with epoll.
bool openWire(Wire& wire, sys::Fd descriptor) {
  BoostError code;
  wire.stream.assign(descriptor.get(), code);
  if (code) return false;
  static_cast<void>(descriptor.release());
  return true;
}

/// Reads up to 32 KiB; empty at the end or when nothing is there.
std::string readWire(Wire& wire) {
  std::string bytes(std::size_t{32} << 10U, '\0');
  const ssize_t got = ::read(wire.stream.native_handle(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got <= 0) wire.ended = true;  // EIO: the last process closed the terminal
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

void writeWire(Wire& wire) {
  while (!wire.pending.empty()) {
    const ssize_t sent = ::write(wire.stream.native_handle(), wire.pending.data(), wire.pending.size());
    if (sent < 0 && errno == EAGAIN) return;
    if (sent <= 0) {
      wire.pending.clear();
      return;
    }
    wire.pending.erase(0, static_cast<std::size_t>(sent));
  }
}

/// Messages of the client, which may come in fragments.
struct Messages {
  std::string partial;
  bool text = false;
  bool closed = false;
  std::optional<CloseCode> failure;
  bool fragmented = false;          ///< a message has begun and is not complete
  std::string replies;              ///< pongs
  std::optional<std::string> held;  ///< a text message that waits for the bytes before it to be written
};

/// Adds a frame of a text or binary message. It fails if it has no place in the sequence of frames, or the message is
/// too large.
std::optional<CloseCode> addToMessage(const Frame& frame, Messages& messages, Wire& wire) {
  if (messages.fragmented != (frame.type == FrameType::continuation)) return CloseCode::protocol_error;
  if (!messages.fragmented) messages.text = frame.type == FrameType::text;
  messages.fragmented = !frame.final;
  messages.partial += frame.payload;
  if (messages.partial.size() > kMaxFrame) return CloseCode::too_big;
  if (!frame.final) return std::nullopt;
  if (messages.text) {
    messages.held = std::move(messages.partial);
  } else {
    wire.pending += messages.partial;
  }
  messages.partial.clear();
  return std::nullopt;
}

/// Takes complete frames from `inbox`, as long as the descriptor takes their content. A text message acts on the
/// descriptor, too, so it waits for the bytes that came before it. True: there may be more frames, but it is the turn
/// of other connections.
bool takeMessages(std::string& inbox, Messages& messages, Wire& wire, const SocketBody& body) {
  constexpr int kFramesPerTurn = 256;
  std::size_t taken = 0;
  int frames = 0;
  for (; frames < kFramesPerTurn && wire.pending.size() < kMaxPending && !messages.closed; ++frames) {
    if (messages.held) {
      writeWire(wire);
      if (!wire.pending.empty()) break;
      if (body.on_text) body.on_text(*messages.held);
      messages.held.reset();
    }
    const auto frame = takeFrame(inbox, taken, messages.failure);
    if (!frame) break;
    if (frame->type == FrameType::ping) messages.replies += makeFrame(FrameType::pong, frame->payload);
    if (frame->type == FrameType::close) messages.closed = true;
    if (frame->type >= FrameType::close) continue;
    messages.failure = addToMessage(*frame, messages, wire);
    if (messages.failure) break;
  }
  inbox.erase(0, taken);  // once: moving the rest after each small frame would occupy the loop
  return frames == kFramesPerTurn;
}

/// Has `wake` called when the descriptor is readable, and when it takes what is pending.
void watchWire(const std::shared_ptr<Wire>& wire, const std::function<void()>& wake) {
  using Descriptor = asio::posix::stream_descriptor;
  if (!wire->pending.empty() && !wire->waiting_write) {
    wire->waiting_write = true;
    wire->stream.async_wait(Descriptor::wait_write, [wire, wake](BoostError) {
      wire->waiting_write = false;
      wake();
    });
  }
  if (wire->waiting_read) return;
  wire->waiting_read = true;
  wire->stream.async_wait(Descriptor::wait_read, [wire, wake](BoostError) {
    wire->waiting_read = false;
    wire->readable = true;
    wake();
  });
}

}  // namespace

asio::awaitable<bool> Connection::relaySocket(const RequestHead& head, SocketBody& body, const Headers& headers) {
  auto wire = std::make_shared<Wire>(loop_.io);
  if (!loop_.watches.isAvailable() || !openWire(*wire, std::move(body.descriptor))) {
    body.descriptor.reset();  // ends what is at its other end
    co_await refuseWatch();
    co_await finishRelay(body);
    co_return false;
  }
  std::string hello =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: " +
      acceptKey(*head.header("sec-websocket-key")) + "\r\n";
  for (const auto& [name, value] : headers) hello += name + ": " + value + "\r\n";
  hello += "\r\n";
  const std::function<void()> wake_up = [self = shared_from_this()] { self->wake(); };
  bool open = co_await write(hello);
  Messages messages;
  TimePoint last_ping = Clock::now(), last_heard = last_ping, last_check = last_ping;
  while (open && !ended_ && !wire->ended && !loop_.stopping) {
    if (body.may_continue && Clock::now() - last_check >= kCheckEvery) {
      last_check = Clock::now();
      if (!body.may_continue()) break;
    }
    if (!inbox_.empty()) last_heard = Clock::now();
    const bool more = takeMessages(inbox_, messages, *wire, body);
    if (!messages.replies.empty()) {
      const std::string replies = std::exchange(messages.replies, "");
      open = co_await write(replies);
    }
    if (messages.failure || messages.closed || !open) break;
    writeWire(*wire);
    if (wire->readable) {
      wire->readable = false;
      const std::string bytes = readWire(*wire);
      const std::string frame = bytes.empty() ? std::string() : makeFrame(FrameType::binary, bytes);
      open = co_await write(frame);
      continue;
    }
    watchWire(wire, wake_up);
    if (more) {
      asio::post(loop_.io, wake_up);
    } else if (wire->pending.size() < kMaxPending && !messages.held) {
      startRead();
    }
    co_await pause(body.may_continue ? std::min(last_ping + kPingEvery, last_check + kCheckEvery)
                                     : last_ping + kPingEvery);
    if (Clock::now() - last_ping < kPingEvery) continue;
    if (Clock::now() - last_heard > 3 * kPingEvery) break;  // the peer vanished without closing
    last_ping = Clock::now();
    const std::string ping = makeFrame(FrameType::ping, "");
    open = co_await write(ping);
  }
  BoostError ignored;
  wire->stream.close(ignored);
  co_await endRelay(body, messages.failure.value_or(loop_.stopping ? CloseCode::going_away : CloseCode::normal));
  co_return false;
}

asio::awaitable<std::string> Connection::finishRelay(SocketBody& body) {
  if (!body.on_end) co_return std::string();
  auto result = std::make_shared<std::pair<bool, std::string>>(false, "");
  const auto on_end = body.on_end;
  const auto work = [self = shared_from_this(), result, on_end] {
    result->second = on_end();
    asio::post(self->loop_.io, [self, result] {
      result->first = true;
      self->wake();
    });
  };
  const bool accepted = loop_.control.run(work, caller_);
  while (accepted && !result->first) co_await pause(Clock::now() + std::chrono::hours(1));
  co_return accepted ? std::move(result->second) : std::string();
}

asio::awaitable<void> Connection::endRelay(SocketBody& body, CloseCode code) {
  const std::string result = co_await finishRelay(body);
  if (!ended_ && !result.empty()) {
    const std::string last = makeFrame(FrameType::text, result);
    co_await write(last);
  }
  if (ended_) co_return;
  const std::string bye = makeCloseFrame(code);
  co_await write(bye);
}

}  // namespace caisson::http
