#include "http/websocket.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

std::string masked(unsigned first, std::string_view payload) {
  std::string frame(1, static_cast<char>(first));
  frame += static_cast<char>(0x80U | payload.size());
  frame += "abcd";
  for (std::size_t i = 0; i < payload.size(); ++i) frame += static_cast<char>(payload[i] ^ "abcd"[i % 4]);
  return frame;
}

TEST(WebSocketFrame, IsUnmaskedOnceComplete) {
  const std::string input = masked(0x82, "hello") + masked(0x81, "x");
  std::optional<CloseCode> failure;
  std::size_t at = 0;
  EXPECT_FALSE(takeFrame(input.substr(0, 4), at, failure));
  EXPECT_FALSE(failure);
  EXPECT_EQ(at, 0U);
  EXPECT_EQ(takeFrame(input, at, failure)->payload, "hello");
  EXPECT_EQ(takeFrame(input, at, failure)->type, FrameType::text);
  EXPECT_EQ(at, input.size());
  EXPECT_FALSE(takeFrame(input, at, failure));
  EXPECT_FALSE(failure);
}

TEST(WebSocketFrame, UnmaskedHugeOrReservedFramesFail) {
  constexpr std::string_view kHuge("\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00", 10);
  const std::string too_long = "\x89\xfe" + std::string(200, 'x');  // a ping of more than 125 bytes
  for (const auto& [input, code] : std::initializer_list<std::pair<std::string, CloseCode>>{
           {makeFrame(FrameType::binary, "x"), CloseCode::protocol_error},
           {std::string(kHuge), CloseCode::too_big},
           {masked(0xF2, "x"), CloseCode::protocol_error},
           {masked(0x83, "x"), CloseCode::protocol_error},
           {masked(0x09, "x"), CloseCode::protocol_error},
           {too_long, CloseCode::protocol_error}}) {
    std::optional<CloseCode> failure;
    std::size_t at = 0;
    EXPECT_FALSE(takeFrame(input, at, failure));
    EXPECT_EQ(failure, code);
  }
}

TEST(WebSocketFrame, OfAClosureHasItsCode) {
  EXPECT_EQ(makeCloseFrame(CloseCode::too_big), std::string("\x88\x02\x03\xf1", 4));
}

TEST(WebSocketHandshake, AnswersTheExampleOfTheStandard) {
  EXPECT_EQ(acceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

}  // namespace
}  // namespace caisson::http
