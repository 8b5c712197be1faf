#include "http/target.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

TEST(HttpTarget, DecodesSegmentsAndQuery) {
  const auto target = parseTarget("/v1/a%20b/c%2Fd?path=%2Fworkspace%2Fx+y&empty");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"v1", "a b", "c/d"}));
  EXPECT_EQ(*target->parameter("path"), "/workspace/x y");
  EXPECT_EQ(*target->parameter("empty"), "");
  EXPECT_EQ(target->path(), "/v1/a%20b/c%2Fd");
}

TEST(HttpTarget, RejectsAmbiguousTargets) {
  for (const char* text : {"", "v1", "//v1", "/v1//x", "/v1/./x", "/v1/../x", "/v1/%2e%2e/x", "/v1/%", "/v1/%0",
                           "/v1/%zz", "/v1/%00", "/v1 x", "/v1#x", "http://host/v1", "/v1/?a=%0", "/v1/"})
    EXPECT_FALSE(parseTarget(text)) << text;
  EXPECT_FALSE(parseTarget("/v1/\xc3\xa4"));
}

TEST(HttpAuthority, ReadsHostAndPortOnlyIfWellFormed) {
  EXPECT_EQ(parseAuthority("LocalHost:7080")->host, "localhost");
  EXPECT_EQ(parseAuthority("[::1]:80")->port, "80");
  for (const char* text : {"", ":80", "a b", "a:b", "a:99999", "[::1", "a@b", "a/b", "[::1]x"})
    EXPECT_FALSE(parseAuthority(text)) << text;
  EXPECT_EQ(parseOrigin("http://127.0.0.1:7080")->authority.port, "7080");
  EXPECT_FALSE(parseOrigin("null"));
}

TEST(HttpAuthority, LookalikesAreNotLoopback) {
  for (const char* text : {"localhost", "127.0.0.1", "127.1.2.3", "[::1]"})
    EXPECT_TRUE(isLoopback(*parseAuthority(text))) << text;
  for (const char* text : {"127.0.0.1.evil.example", "127.evil", "localhost.evil", "0.0.0.0", "127.0.0.256"})
    EXPECT_FALSE(isLoopback(*parseAuthority(text))) << text;
}

TEST(HttpRange, SelectsPartsOfAFile) {
  EXPECT_EQ(parseRange("bytes=2-4", 10).offset, 2U);
  EXPECT_EQ(parseRange("bytes=2-4", 10).length, 3U);
  EXPECT_EQ(parseRange("bytes=-3", 10).offset, 7U);
  EXPECT_EQ(parseRange("bytes=8-", 10).length, 2U);
  EXPECT_EQ(parseRange("bytes=8-100", 10).length, 2U);
  EXPECT_TRUE(parseRange("bytes=10-", 10).unsatisfiable);
  EXPECT_TRUE(parseRange("bytes=0-", 0).unsatisfiable);
  for (const char* text :
       {"", "bytes=", "bytes=a-b", "lines=1-2", "bytes=5-2", "bytes=0-1,3-4", "bytes=-18446744073709551616"})
    EXPECT_FALSE(parseRange(text, 10).partial) << text;
}

TEST(HttpHead, FlawsOfOtherParsersAreRejected) {
  EXPECT_EQ(findHeadFlaw("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "");
  for (const char* text :
       {"GET / HTTP/1.1\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nnocolon\r\n\r\n", "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n"})
    EXPECT_NE(findHeadFlaw(text), "") << text;
}

}  // namespace
}  // namespace caisson::http
