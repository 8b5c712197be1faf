// WebSocket frames (RFC 6455), as pure functions. Our own: the connection owns its reads and writes, and frames are the
// only part of the protocol that is left then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::http {

enum class FrameType : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

/// Why a WebSocket is closed, as its peer is told.
enum class CloseCode : std::uint16_t { normal = 1000, going_away = 1001, protocol_error = 1002, too_big = 1009 };

struct Frame {
  FrameType type = FrameType::binary;
  bool final = true;
  std::string payload;
};

/// Largest payload of one frame, and of one message, from a client.
inline constexpr std::size_t kMaxFrame = std::size_t{64} << 10U;

/// Takes the next frame of a client, which begins at `position`, and moves `position` behind it. Nothing: it is
/// incomplete, or `failure` is set because it is malformed, unmasked or too large.
std::optional<Frame> takeFrame(std::string_view input, std::size_t& position, std::optional<CloseCode>& failure);
/// A frame of a server.
std::string makeFrame(FrameType type, std::string_view payload);
std::string makeCloseFrame(CloseCode code);
/// The value of Sec-WebSocket-Accept.
std::string acceptKey(std::string_view client_key);

}  // namespace caisson::http
