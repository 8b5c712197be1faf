#include "mcp/http/headers.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

const Json kOneTool = Json::parse(
    R"([{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}])");

Message callOf(std::string_view params) {
  return *decodeMessage(
      *parseJson(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)" + std::string(params) + "}"));
}

bool agrees(std::vector<std::pair<std::string, std::string>> headers, std::string_view params) {
  headers.emplace_back("mcp-method", "tools/call");
  return !checkHeaders({.method = "POST", .headers = std::move(headers)}, callOf(params), kOneTool);
}

TEST(McpHttpHeaders, MustMatchTheBody) {
  EXPECT_TRUE(agrees({{"mcp-name", "t"}}, R"({"name":"t"})"));
  EXPECT_FALSE(agrees({{"mcp-name", "T"}}, R"({"name":"t"})"));
  EXPECT_FALSE(agrees({}, R"({"name":"t"})"));
  EXPECT_FALSE(checkHeaders({}, callOf(R"({"name":"t"})"), kOneTool) == std::nullopt);
  constexpr std::string_view kVersioned =
      R"({"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}})";
  EXPECT_TRUE(agrees({{"mcp-name", "t"}, {"mcp-protocol-version", "2026-07-28"}}, kVersioned));
  EXPECT_FALSE(agrees({{"mcp-name", "t"}, {"mcp-protocol-version", "2025-11-25"}}, kVersioned));
  EXPECT_FALSE(agrees({{"mcp-name", "t"}}, kVersioned));
}

TEST(McpHttpHeaders, MirroredParametersAreDecodedAndCompared) {
  constexpr std::string_view kBody = R"({"name":"t","arguments":{"region":"Hello"}})";
  EXPECT_TRUE(agrees({{"mcp-name", "t"}, {"mcp-param-region", "Hello"}}, kBody));
  EXPECT_TRUE(agrees({{"mcp-name", "t"}, {"mcp-param-region", "=?base64?SGVsbG8=?="}}, kBody));
  EXPECT_FALSE(agrees({{"mcp-name", "t"}, {"mcp-param-region", "=?base64?SGVsbG8?="}}, kBody));
  EXPECT_FALSE(agrees({{"mcp-name", "t"}, {"mcp-param-region", "Bye"}}, kBody));
  EXPECT_FALSE(agrees({{"mcp-name", "t"}}, kBody));
  EXPECT_FALSE(agrees({{"mcp-name", "t"}, {"mcp-param-region", "Hello"}}, R"({"name":"t"})"));
}

}  // namespace
}  // namespace caisson::mcp
