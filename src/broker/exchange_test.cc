#include "broker/exchange.h"

#include <gtest/gtest.h>

namespace caisson::broker {
namespace {

constexpr const char* kSecret = "s3cr3t-token-42";
constexpr const char* kField = "Authorization: Bearer s3cr3t-token-42\r\n";

Exchange make(bool proved = true) {
  Exchange exchange({{"api.example.org", std::nullopt}, 443},
                    {{"api", "Authorization", "Bearer s3cr3t-token-42", kSecret}});
  if (proved) exchange.hostProved();
  return exchange;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

constexpr const char* kGet = "GET /a HTTP/1.1\r\nHost: api.example.org\r\nAccept: */*\r\n\r\n";
constexpr const char* kFine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(Exchange, SetsTheField) {
  Exchange exchange = make();
  exchange.fromClient(kGet);
  EXPECT_EQ(exchange.toUpstream(),
            std::string("GET /a HTTP/1.1\r\nHost: api.example.org\r\nAccept: */*\r\n") + kField + "\r\n");
  const auto events = exchange.takeEvents();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].used);
  EXPECT_EQ(events[0].text, "api (Authorization)");
  exchange.fromUpstream(kFine);
  EXPECT_EQ(exchange.toClient(), kFine);
  EXPECT_FALSE(exchange.finished());
}

TEST(Exchange, TooManyInterimAnswersGet502) {
  std::string heads;
  for (int i = 0; i < 32; ++i) heads += "HTTP/1.1 103 Early Hints\r\n\r\n";
  Exchange exchange = make();
  for (int request = 0; request < 2; ++request) {  // counted for each request
    exchange.fromClient(kGet);
    exchange.fromUpstream(heads + kFine);
    EXPECT_EQ(exchange.toClient(), heads + kFine);
    exchange.toClient().clear();
  }
  exchange.fromClient(kGet);
  exchange.fromUpstream(heads + "HTTP/1.1 100 \r\n\r\n" + kFine);
  EXPECT_TRUE(has(exchange.toClient(), "HTTP/1.1 502"));
  EXPECT_EQ(count(exchange.toClient(), "HTTP/1.1 1"), 32U);
  EXPECT_TRUE(exchange.finished());
  Exchange large = make();  // also by their size
  large.fromClient(kGet);
  const std::string long_head = "HTTP/1.1 103 Early Hints\r\nLink: " + std::string(30000, 'x') + "\r\n\r\n";
  large.fromUpstream(long_head + long_head);
  EXPECT_FALSE(has(large.toClient(), "HTTP/1.1 502"));
  large.fromUpstream(long_head);
  EXPECT_TRUE(has(large.toClient(), "HTTP/1.1 502"));
}

/// The host must be authenticated first, whatever the client has sent.
TEST(Exchange, SendsNothingBeforeTheHostIsAuthenticated) {
  Exchange exchange = make(false);
  exchange.fromClient(kGet);
  EXPECT_EQ(exchange.toUpstream(), "");
  EXPECT_TRUE(exchange.takeEvents().empty());
  exchange.hostProved();
  EXPECT_TRUE(has(exchange.toUpstream(), kField));
}

TEST(Exchange, UnauthenticatedHostGetsNothing) {
  Exchange exchange = make(false);
  exchange.fromClient(kGet);
  exchange.hostFailed("the certificate is expired");
  EXPECT_EQ(exchange.toUpstream(), "");
  EXPECT_TRUE(has(exchange.toClient(), "HTTP/1.1 502"));
  EXPECT_TRUE(has(exchange.toClient(), "expired"));
  EXPECT_TRUE(exchange.finished());
}

TEST(Exchange, HeaderOfTheProgramIsReplacedInAnySpelling) {
  for (const char* own : {"Authorization: Bearer caisson-credential-api\r\n", "aUTHORIZATION:x\r\n",
                          "Authorization: a\r\nauthorization: b\r\n"}) {
    Exchange exchange = make();
    exchange.fromClient(std::string("GET / HTTP/1.1\r\nHost: api.example.org\r\n") + own + "\r\n");
    std::string lowered = exchange.toUpstream();
    for (char& c : lowered) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(count(lowered, "authorization:"), 1U) << own;
    EXPECT_TRUE(has(exchange.toUpstream(), kField)) << own;
  }
}

/// "Connection: authorization" would make the next proxy drop the field.
TEST(Exchange, CredentialHeaderCannotBeDeclaredHopByHop) {
  Exchange exchange = make();
  exchange.fromClient("GET / HTTP/1.1\r\nHost: api.example.org\r\nConnection: authorization\r\n\r\n");
  EXPECT_TRUE(has(exchange.toUpstream(), kField));
  EXPECT_FALSE(has(exchange.toUpstream(), "Connection: authorization"));
}

TEST(Exchange, EveryRequestOfAConnectionIsForTheHost) {
  Exchange exchange = make();
  exchange.fromClient(std::string(kGet) + "GET /b HTTP/1.1\r\nHost: evil.test\r\n\r\n");
  exchange.fromUpstream(kFine);
  EXPECT_EQ(count(exchange.toUpstream(), kSecret), 1U);
  EXPECT_FALSE(has(exchange.toUpstream(), "evil.test"));
  EXPECT_TRUE(has(exchange.toClient(), "HTTP/1.1 400"));
  EXPECT_TRUE(exchange.finished());
}

TEST(Exchange, AmbiguousRequestsAreRefused) {
  const std::string host = "Host: api.example.org\r\n";
  for (const std::string& request : {
           "POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
           "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           "GET / HTTP/1.1\n" + host + "\n\n",
           "GET / HTTP/1.1\r\n" + host + "X: a\r\n b: c\r\n\r\n",
           "GET / HTTP/1.1\r\n" + host + "X : a\r\n\r\n",
           "GET / HTTP/1.1\r\n" + host + host + "\r\n",
           std::string("GET / HTTP/1.1\r\n\r\n"),
           std::string("GET / HTTP/1.0\r\n\r\n"),
           std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
           std::string("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n"),
           std::string("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nHost: api.example.org:8443\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nHost: api.example.org@evil.test\r\n\r\n"),
           "TRACE / HTTP/1.1\r\n" + host + "\r\n",
       }) {
    Exchange exchange = make();
    exchange.fromClient(request);
    EXPECT_EQ(exchange.toUpstream(), "") << request;
    EXPECT_TRUE(exchange.finished()) << request;
    EXPECT_TRUE(has(exchange.toClient(), "HTTP/1.1 400")) << request;
    const auto events = exchange.takeEvents();
    EXPECT_TRUE(events.size() == 1 && !events[0].used) << request;
  }
}

TEST(Exchange, BytesAfterABodyAreANewRequest) {
  Exchange exchange = make();
  exchange.fromClient(
      "POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 2\r\n\r\nhiGET /x HTTP/1.1\r\nHost: "
      "evil.test\r\n\r\n");
  EXPECT_TRUE(exchange.toUpstream().ends_with("\r\n\r\nhi"));
  exchange.fromUpstream(kFine);
  EXPECT_TRUE(has(exchange.toClient(), "HTTP/1.1 400"));
}

TEST(Exchange, MalformedChunksEndTheConnection) {
  Exchange exchange = make();
  exchange.fromClient("POST / HTTP/1.1\r\nHost: api.example.org\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
  EXPECT_TRUE(exchange.finished());
}

TEST(Exchange, UnsolicitedResponseEndsTheConnection) {
  Exchange exchange = make();
  exchange.fromUpstream(kFine);
  EXPECT_TRUE(exchange.broken());
  EXPECT_EQ(exchange.toClient(), "");
}

TEST(Exchange, SecretRepeatedInAResponseHeadIsMasked) {
  Exchange exchange = make();
  exchange.fromClient(kGet);
  exchange.fromUpstream(
      "HTTP/1.1 302 Found\r\nLocation: https://evil.test/?t=s3cr3t-token-42\r\nContent-Length: 0\r\n\r\n");
  EXPECT_FALSE(has(exchange.toClient(), kSecret));
  EXPECT_TRUE(has(exchange.toClient(), "t=***\r\n"));
}

TEST(Exchange, SecretRepeatedInChunkExtensionsAndTrailersIsMasked) {
  const std::string response = std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;t=") + kSecret +
                               "\r\nok\r\n0;" + kSecret + "\r\nX-T: " + kSecret + "\r\n\r\n";
  for (const std::size_t piece : {response.size(), std::size_t{1}, std::size_t{7}}) {
    Exchange exchange = make();
    exchange.fromClient(kGet);
    for (std::size_t at = 0; at < response.size(); at += piece) exchange.fromUpstream(response.substr(at, piece));
    EXPECT_EQ(exchange.toClient(),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: ***\r\n\r\n");
    EXPECT_FALSE(exchange.finished());
    exchange.fromClient(kGet);
    exchange.fromUpstream(kFine);
    EXPECT_TRUE(exchange.toClient().ends_with("ok"));
  }
}

TEST(Exchange, SecretRepeatedInAWebSocketIsMasked) {
  Exchange exchange = make();
  exchange.fromClient(
      "GET /ws HTTP/1.1\r\nHost: api.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
  EXPECT_FALSE(has(exchange.toUpstream(), "deflate"));
  exchange.fromUpstream("HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x0fs3cr3t-");
  exchange.fromUpstream("token-42\x82\x01x");
  EXPECT_TRUE(exchange.toClient().ends_with("\x81\x0f***************\x82\x01x")) << exchange.toClient();
  exchange.fromUpstream("\xc1\x01z");  // compressed, although that was not agreed
  EXPECT_TRUE(exchange.broken());
}

TEST(Exchange, WebSocketIsRelayedOnlyAfterTheHostAcceptedIt) {
  const std::string ask =
      "GET /ws HTTP/1.1\r\nHost: api.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  Exchange agreed = make();
  agreed.fromClient(ask + "early");
  EXPECT_TRUE(has(agreed.toUpstream(), kField));
  EXPECT_FALSE(has(agreed.toUpstream(), "early"));
  agreed.fromUpstream("HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05hello");
  EXPECT_TRUE(agreed.toUpstream().ends_with("early"));
  EXPECT_TRUE(agreed.toClient().ends_with("\x81\x05hello"));
  Exchange unasked = make();
  unasked.fromClient(kGet);
  unasked.fromUpstream("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  EXPECT_TRUE(has(unasked.toClient(), "HTTP/1.1 502"));
}

TEST(Exchange, TruncatedResponseStaysTruncated) {
  Exchange exchange = make();
  exchange.fromClient(kGet);
  exchange.fromUpstream("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  exchange.upstreamEnded();
  EXPECT_TRUE(exchange.broken());
}

TEST(Exchange, StopsReadingWhileTheOtherSideDoesNotRead) {
  Exchange exchange = make();
  exchange.fromClient("POST / HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 1000000\r\n\r\n");
  while (exchange.wantsClient()) exchange.fromClient(std::string(16384, 'x'));
  EXPECT_LT(exchange.toUpstream().size(), 200000U);
}

}  // namespace
}  // namespace caisson::broker
