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
  bool failed = false;
  std::size_t at = 0;
  EXPECT_FALSE(takeFrame(input.substr(0, 4), at, failed));
  EXPECT_FALSE(failed);
  EXPECT_EQ(at, 0U);
  EXPECT_EQ(takeFrame(input, at, failed)->payload, "hello");
  EXPECT_EQ(takeFrame(input, at, failed)->type, FrameType::text);
  EXPECT_EQ(at, input.size());
  EXPECT_FALSE(takeFrame(input, at, failed));
  EXPECT_FALSE(failed);
}

TEST(WebSocketFrame, UnmaskedHugeOrReservedFramesFail) {
  bool failed = false;
  for (const std::string& input :
       {makeFrame(FrameType::binary, "x"), std::string("\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00", 10),
        masked(0xF2, "x"), masked(0x83, "x"), masked(0x09, "x")}) {
    std::size_t at = 0;
    EXPECT_FALSE(takeFrame(input, at, failed));
    EXPECT_TRUE(failed);
  }
}

TEST(WebSocketHandshake, AnswersTheExampleOfTheStandard) {
  EXPECT_EQ(acceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

}  // namespace
}  // namespace caisson::http
