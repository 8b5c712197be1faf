#include "mcp/protocol/message.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

std::expected<Message, Malformed> decode(std::string_view text) { return decodeMessage(*parseJson(text)); }

TEST(McpMessage, DistinguishesRequestsNotificationsAndResponses) {
  const auto request = decode(R"({"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->kind, Message::Kind::request);
  EXPECT_EQ(request->id, "a");
  EXPECT_EQ(request->params["x"], 1);
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","method":"m"})")->kind, Message::Kind::notification);
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","id":3,"result":{}})")->kind, Message::Kind::response);
  EXPECT_FALSE(decode(R"({"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}})")->error.is_null());
}

TEST(McpMessage, RejectsInvalidMessages) {
  for (const char* text :
       {"[]", "3", "null", R"({})", R"({"id":1,"method":"m"})", R"({"jsonrpc":"1.0","id":1,"method":"m"})",
        R"({"jsonrpc":"2.0","id":1,"method":7})", R"({"jsonrpc":"2.0","id":1,"method":"m","params":[]})",
        R"({"jsonrpc":"2.0","id":1,"result":1,"error":{}})", R"({"jsonrpc":"2.0","result":{}})"}) {
    const auto message = decode(text);
    ASSERT_FALSE(message) << text;
    EXPECT_EQ(message.error().error.code, code::kInvalidRequest) << text;
  }
}

TEST(McpMessage, AnIdIsAStringOrAnInteger) {
  for (const char* id : {"null", "1.5", "1.0", "true", "{}", "[]"}) {
    const auto message = decode(R"({"jsonrpc":"2.0","method":"m","id":)" + std::string(id) + "}");
    ASSERT_FALSE(message) << id;
    EXPECT_TRUE(message.error().id.is_null()) << id;
  }
  EXPECT_FALSE(decode(R"({"jsonrpc":"2.0","method":"m","id":")" + std::string(2000, 'x') + "\"}"));
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","method":"m","id":-5})")->id, -5);
}

TEST(McpMessage, RejectionHasTheIdOfTheRequest) {
  const auto message = decode(R"({"jsonrpc":"2.0","id":9,"method":"m","params":"x"})");
  ASSERT_FALSE(message);
  EXPECT_EQ(makeError(message.error().id, message.error().error)["id"], 9);
  EXPECT_FALSE(makeError(Json(), message.error().error).contains("id"));
}

TEST(McpMessage, RejectionOfATextBeyondTheLimitsHasTheIdOfTheRequest) {
  std::string values = "1";
  for (int i = 0; i < 300'000; ++i) values += ",1";
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  const std::string head = R"({"jsonrpc":"2.0","method":"m","params":{"id":7,"a":[)";
  for (const std::string& content : {values, deep}) {
    for (const char* id : {"9", "\"nine\"", "-3"}) {
      const Malformed refused = unreadable(head + content + R"(]},"id":)" + id + "}", "too much");
      EXPECT_EQ(writeJson(refused.id), id);
      EXPECT_EQ(refused.error.code, code::kInvalidRequest);
    }
  }
  for (const char* text : {R"({"id":1})", R"([{"id":1,"method":"m"}])", R"({"id":1,"method":"m")", R"({"method":"m"})",
                           R"({"id":1,"id":2,"method":"m"})", R"({"id":{"id":1},"method":"m"})",
                           R"({"id":1.5,"method":"m"})", R"({"params":{"id":1},"method":"m"})", "", "1"}) {
    const Malformed refused = unreadable(text, "unreadable");
    EXPECT_TRUE(refused.id.is_null()) << text;
    EXPECT_EQ(refused.error.code, code::kParse) << text;
  }
}

}  // namespace
}  // namespace caisson::mcp
