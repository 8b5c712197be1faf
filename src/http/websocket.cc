#include "http/websocket.h"

#include <openssl/sha.h>

#include "base/base64.h"

namespace caisson::http {

std::optional<Frame> takeFrame(std::string_view whole, std::size_t& position, std::optional<CloseCode>& failure) {
  failure.reset();
  const std::string_view input = whole.substr(position);
  if (input.size() < 2) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(input[at]); };
  const unsigned opcode = byte(0) & 15U;
  const bool known = opcode <= 2 || (opcode >= 8 && opcode <= 10);
  const bool control = opcode >= 8;
  const bool final = (byte(0) & 0x80U) != 0;
  std::uint64_t length = byte(1) & 0x7FU;
  if (!known || (byte(0) & 0x70U) != 0 || (byte(1) & 0x80U) == 0 || (control && (!final || length > 125))) {
    failure = CloseCode::protocol_error;
    return std::nullopt;
  }
  std::size_t at = 2;
  const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
  if (input.size() < at + more) return std::nullopt;
  if (more > 0) length = 0;
  for (std::size_t i = 0; i < more; ++i) length = length << 8U | byte(at++);
  if (length > kMaxFrame) {
    failure = CloseCode::too_big;
    return std::nullopt;
  }
  if (input.size() < at + 4 + length) return std::nullopt;
  Frame frame{.type = static_cast<FrameType>(opcode), .final = final};
  frame.payload = input.substr(at + 4, length);
  for (std::size_t i = 0; i < frame.payload.size(); ++i)
    frame.payload[i] = static_cast<char>(static_cast<unsigned char>(frame.payload[i]) ^ byte(at + i % 4));
  position += at + 4 + length;
  return frame;
}

std::string makeFrame(FrameType type, std::string_view payload) {
  std::string frame(1, static_cast<char>(0x80U | static_cast<unsigned>(type)));
  const std::uint64_t size = payload.size();
  const int bytes = size < 126 ? 0 : size < 65536 ? 2 : 8;
  frame += static_cast<char>(bytes == 0 ? size : bytes == 2 ? 126 : 127);
  for (int shift = bytes * 8 - 8; shift >= 0; shift -= 8)
    frame += static_cast<char>(size >> static_cast<unsigned>(shift) & 0xFFU);
  return frame.append(payload);
}

std::string makeCloseFrame(CloseCode code) {
  const auto number = static_cast<unsigned>(code);
  const char bytes[] = {static_cast<char>(number >> 8U), static_cast<char>(number & 0xFFU)};
  return makeFrame(FrameType::close, std::string_view(bytes, sizeof bytes));
}

std::string acceptKey(std::string_view client_key) {
  const std::string text = std::string(client_key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return encodeBase64(std::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

}  // namespace caisson::http
