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
  std::string input = masked(0x82, "hello") + masked(0x81, "x");
  std::string partial = input.substr(0, 4);
  bool failed = false;
  EXPECT_FALSE(takeFrame(partial, failed));
  EXPECT_FALSE(failed);
  EXPECT_EQ(takeFrame(input, failed)->payload, "hello");
  EXPECT_EQ(takeFrame(input, failed)->type, FrameType::text);
  EXPECT_TRUE(input.empty());
}

TEST(WebSocketFrame, UnmaskedHugeOrReservedOnesFail) {
  bool failed = false;
  for (std::string input :
       {makeFrame(FrameType::binary, "x"), std::string("\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00", 10),
        masked(0xF2, "x"), masked(0x83, "x"), masked(0x09, "x")}) {
    EXPECT_FALSE(takeFrame(input, failed));
    EXPECT_TRUE(failed);
  }
}

TEST(WebSocketHandshake, AnswersTheExampleOfTheStandard) {
  EXPECT_EQ(acceptKey("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

}  // namespace
}  // namespace caisson::http
