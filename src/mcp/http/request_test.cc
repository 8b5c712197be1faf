#include "mcp/http/request.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

HttpReader::Next read(const std::string& bytes, std::size_t piece = 1000000) {
  HttpReader reader({});
  HttpReader::Next next;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.add(std::string_view(bytes).substr(at, piece));
    next = reader.next();
    if (!std::holds_alternative<HttpReader::NeedsMore>(next)) break;
  }
  return next;
}

int refused(const std::string& bytes) {
  const auto next = read(bytes);
  const auto* refusal = std::get_if<HttpRefusal>(&next);
  return refusal == nullptr ? 0 : refusal->status;
}

TEST(McpHttpRequest, IsReadInPiecesOfAnySize) {
  const std::string bytes =
      "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nMCP-METHOD:  tools/list \r\nContent-Length: 4\r\n\r\nbody";
  for (const std::size_t piece : {1U, 2U, 5U, 1000U}) {
    const auto next = read(bytes, piece);
    const auto* request = std::get_if<HttpRequest>(&next);
    ASSERT_NE(request, nullptr) << piece;
    EXPECT_EQ(request->method, "POST");
    EXPECT_EQ(request->target, "/mcp");
    EXPECT_EQ(request->body, "body");
    ASSERT_NE(request->header("mcp-method"), nullptr);
    EXPECT_EQ(*request->header("mcp-method"), "tools/list");
    EXPECT_TRUE(request->keep_alive);
  }
}

TEST(McpHttpRequest, PipelinedRequestsComeOneByOne) {
  HttpReader reader({});
  reader.add("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(std::get<HttpRequest>(reader.next()).target, "/a");
  const auto second = std::get<HttpRequest>(reader.next());
  EXPECT_EQ(second.target, "/b");
  EXPECT_FALSE(second.keep_alive);
  EXPECT_TRUE(reader.idle());
}

TEST(McpHttpRequest, WhatCouldBeReadInTwoWaysIsRefused) {
  CONFORMS("R-SESSION-11");
  const std::string begin = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(refused(begin + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody"), 400);
  EXPECT_EQ(refused(begin + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 411);
  EXPECT_EQ(refused(begin + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nbody"), 411);
  EXPECT_EQ(refused(begin + "Host: evil.example\r\n\r\n"), 400);
  EXPECT_EQ(refused(begin + "Mcp-Name: a\r\nMcp-Name: b\r\n\r\n"), 400);
  EXPECT_EQ(refused(begin + "Content-Length: +4\r\n\r\nbody"), 400);
  EXPECT_EQ(refused(begin + "Content-Length: 4x\r\n\r\nbody"), 400);
  EXPECT_EQ(refused(begin + "Folded: a\r\n b\r\n\r\n"), 400);
  EXPECT_EQ(refused(begin + "Bad Name: a\r\n\r\n"), 400);
  EXPECT_EQ(refused(begin + std::string("Nul: a\0b\r\n\r\n", 12)), 400);
  EXPECT_EQ(refused("POST /mcp HTTP/1.1\nHost: x\n\n"), 400);
  EXPECT_EQ(refused("POST  HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("POST /a b HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refused("POST /mcp HTTP/2.0\r\n\r\n"), 505);
}

TEST(McpHttpRequest, IsBounded) {
  EXPECT_EQ(refused("GET /" + std::string(40000, 'x')), 431);
  EXPECT_EQ(refused("POST /mcp HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"), 413);
  EXPECT_EQ(refused("POST /mcp HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"), 413);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) many += "x: y\r\n";
  EXPECT_EQ(refused(many + "\r\n"), 400);
}

TEST(McpHttpRequest, ExpectationIsSeenOnce) {
  HttpReader reader({});
  reader.add("POST /mcp HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_TRUE(std::holds_alternative<HttpReader::NeedsMore>(reader.next()));
  EXPECT_TRUE(reader.takeExpectation());
  EXPECT_FALSE(reader.takeExpectation());
}

TEST(McpHttpRequest, OnlyLoopbackNamesAreLocal) {
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:7070", "[::1]", "[::1]:7070"})
    EXPECT_TRUE(isLoopbackAuthority(host)) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1:", "[::1", "[::1]x",
        "localhost:123456", "localhost:1a", "0.0.0.0", "user@localhost", "127.0.0.1:80:80"})
    EXPECT_FALSE(isLoopbackAuthority(host)) << host;
  EXPECT_TRUE(isLoopbackOrigin("http://localhost:3000"));
  for (const char* origin : {"null", "http://evil.example", "file://localhost", "localhost", "http://localhost/x"})
    EXPECT_FALSE(isLoopbackOrigin(origin)) << origin;
}

}  // namespace
}  // namespace caisson::mcp
