#include "egress/http_head.h"

#include <gtest/gtest.h>

namespace caisson::egress::http {
namespace {

RequestHead parse(std::string_view text) { return parseRequest(text, 80); }
bool bad(std::string_view text) { return parse(text).status == Status::bad; }

TEST(RequestHead, ReadsTheThreeForms) {
  const RequestHead absolute = parse("GET http://Example.ORG:8080/a?b HTTP/1.1\r\nHost: example.org:8080\r\n\r\n");
  ASSERT_EQ(absolute.status, Status::done) << absolute.flaw;
  EXPECT_EQ(absolute.authority.host.name, "example.org");
  EXPECT_EQ(absolute.authority.port, 8080);
  EXPECT_EQ(absolute.path, "/a?b");
  const RequestHead origin = parse("GET /a HTTP/1.1\r\nHost: example.org\r\n\r\n");
  EXPECT_EQ(origin.authority.host.name, "example.org");
  EXPECT_EQ(origin.authority.port, 80);
  const RequestHead tunnel = parse("CONNECT example.org:443 HTTP/1.1\r\n\r\n");
  ASSERT_EQ(tunnel.status, Status::done) << tunnel.flaw;
  EXPECT_TRUE(tunnel.connect);
  EXPECT_EQ(tunnel.authority.port, 443);
}

TEST(RequestHead, WaitsForTheEmptyLine) {
  const std::string_view whole = "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parse(whole.substr(0, size)).status, Status::more) << size;
  }
  EXPECT_EQ(parse(whole).used, whole.size());
}

TEST(RequestHead, TargetAndHostMustAgree) {
  EXPECT_TRUE(bad("GET http://example.org/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
  EXPECT_TRUE(bad("GET http://example.org/ HTTP/1.1\r\nHost: example.org:81\r\n\r\n"));
  EXPECT_TRUE(bad("CONNECT example.org:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"));
  EXPECT_TRUE(bad("GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n"));
  EXPECT_TRUE(bad("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(bad("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n"));
  EXPECT_FALSE(bad("GET http://example.org/ HTTP/1.1\r\nHOST: EXAMPLE.org.\r\n\r\n"));
}

TEST(RequestHead, RejectsSmuggledRequests) {
  const std::string line = "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\n";
  for (const char* fields : {
           "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
           "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
           "Transfer-Encoding: gzip, chunked\r\n\r\n",
           "Transfer-Encoding: xchunked\r\n\r\n",
           "Transfer-Encoding : chunked\r\n\r\n",
           "Transfer-Encoding:\r\n chunked\r\n\r\n",
           "Content-Length: +1\r\n\r\n",
           "Content-Length: 1,1\r\n\r\n",
           "Content-Length: 0x1\r\n\r\n",
           "Content-Length: -1\r\n\r\n",
           "Content-Length:\r\n\r\n",
           "Content-Length: 99999999999999999999\r\n\r\n",
           " Content-Length: 1\r\n\r\n",
           "X: a\nContent-Length: 1\r\n\r\n",
           "X: a\rY: b\r\n\r\n",
           "NoColon\r\n\r\n",
           ": empty\r\n\r\n",
           "X\x01: a\r\n\r\n",
       }) {
    EXPECT_TRUE(bad(line + fields)) << fields;
  }
  EXPECT_TRUE(bad("POST http://example.org/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

TEST(RequestHead, RejectsMalformedRequestLines) {
  for (const char* line :
       {"GET  http://example.org/ HTTP/1.1", "GET http://example.org/", "GET\thttp://a/ HTTP/1.1",
        "GET http://example.org/ HTTP/2.0", "GET http://example.org/ HTTP/1.1 x",
        "GET http://user@example.org/ HTTP/1.1", "GET ftp://example.org/ HTTP/1.1", "GET https://example.org/ HTTP/1.1",
        "GET example.org HTTP/1.1", "CONNECT example.org HTTP/1.1", "CONNECT example.org:443/ HTTP/1.1",
        "CONNECT http://example.org:443 HTTP/1.1", "G@T / HTTP/1.1", "PRI * HTTP/2.0",
        "GET http://example.org\\@evil.test/ HTTP/1.1", "GET http://exa%6dple.org/ HTTP/1.1",
        "GET http://example.org?x HTTP/1.1"}) {
    EXPECT_TRUE(bad(std::string(line) + "\r\nHost: example.org\r\n\r\n")) << line;
  }
  EXPECT_TRUE(bad("\r\nGET / HTTP/1.1\r\nHost: example.org\r\n\r\n"));
}

TEST(RequestHead, IsBounded) {
  std::string fields;
  for (std::size_t i = 0; i < kMaxFields + 1; ++i) fields += "A: b\r\n";
  EXPECT_TRUE(bad("GET http://example.org/ HTTP/1.1\r\n" + fields + "\r\n"));
  EXPECT_TRUE(bad("GET http://example.org/ HTTP/1.1\r\nA: " + std::string(kHeadBytes, 'a')));
}

TEST(Rewrite, UsesOriginFormAndRemovesHopByHopHeaders) {
  const RequestHead head = parse(
      "GET http://example.org/a HTTP/1.1\r\nHost: EXAMPLE.org\r\nProxy-Authorization: secret\r\nConnection: X-Drop\r\n"
      "X-Drop: 1\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nAccept: */*\r\n\r\n");
  ASSERT_EQ(head.status, Status::done) << head.flaw;
  EXPECT_EQ(rewriteForOrigin(head, {.extra = "X-Added: 1\r\n"}),
            "GET /a HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nX-Added: 1\r\n\r\n");
}

TEST(Rewrite, ConnectionHeaderCannotRemoveFramingHeaders) {
  const RequestHead head = parse(
      "POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: content-length\r\nContent-Length: "
      "5\r\n\r\n");
  EXPECT_NE(rewriteForOrigin(head, {}).find("Content-Length: 5"), std::string::npos);
}

TEST(ResponseHead, DeterminesWhereTheBodyEnds) {
  const auto kind = [](std::string_view text, bool to_head = false) { return parseResponse(text, to_head).body.kind; };
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), Framing::Kind::length);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Framing::Kind::none);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true), Framing::Kind::none);
  EXPECT_EQ(kind("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), Framing::Kind::chunked);
  EXPECT_EQ(kind("HTTP/1.0 200 OK\r\n\r\n"), Framing::Kind::until_close);
  EXPECT_EQ(kind("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), Framing::Kind::none);
  EXPECT_EQ(parseResponse("HTTP/1.1 302\r\nLocation: http://a/\r\n\r\n", false).location, "http://a/");
  EXPECT_EQ(parseResponse("ICY 200 OK\r\n\r\n", false).status, Status::bad);
}

TEST(HttpDetection, DistinguishesRequestsFromOtherProtocols) {
  EXPECT_EQ(looksLikeRequest("GET / HTTP/1.1\r\n"), Looks::http);
  EXPECT_EQ(looksLikeRequest("\r\n\r\nget /"), Looks::http);
  EXPECT_EQ(looksLikeRequest("GET http://x/ HTTP/1.1\r\n"), Looks::http);
  EXPECT_EQ(looksLikeRequest("PRI * HTTP/2.0\r\n"), Looks::http);
  EXPECT_EQ(looksLikeRequest("GE"), Looks::more);
  for (const std::string_view odd :
       {" GET / HTTP/1.1\r\n", "\t\v\f\x1c\xa0GET / HTTP/1.1\r\n", "GET\v/ HTTP/1.1\r\n", "get\x1f/x", "GET\r/",
        "GET\x85/", "GET/ HTTP/1.1\r\n", "POST\x01/", "odd\f* HTTP/1.0\r\n"}) {
    EXPECT_EQ(looksLikeRequest(odd), Looks::http) << odd;
  }
  EXPECT_EQ(looksLikeRequest(std::string_view("GET\0/", 5)), Looks::http);
  for (const std::string_view other :
       {"PING\r\n", "get key\r\n", "*1\r\n$4\r\nPING\r\n", "\x10\x0e\0\x04MQTT", "GROUP x\r\n", "HEAD\r\n"}) {
    EXPECT_EQ(looksLikeRequest(other), Looks::other) << other;
  }
  EXPECT_EQ(looksLikeRequest(std::string(5000, ' ')), Looks::other);
  EXPECT_EQ(looksLikeRequest("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"), Looks::other);
  EXPECT_EQ(looksLikeRequest("EHLO there\r\n"), Looks::other);
  EXPECT_EQ(looksLikeRequest(std::string_view("\0\0\0\x08", 4)), Looks::other);
}

}  // namespace
}  // namespace caisson::egress::http
