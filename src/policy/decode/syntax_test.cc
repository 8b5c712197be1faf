#include "policy/decode/syntax.h"

#include <gtest/gtest.h>

namespace caisson::policy {

TEST(Syntax, HostPatterns) {
  for (const char* good : {"example.org", "*.example.org", ".example.org", "example.org.", "*", "xn--bcher-kva.example",
                           "1.2.3.4", "2001:db8::1", "[2001:db8::1]", "a_b.example", "host", "3com.example", "a.b:443",
                           "*.a.b:22", "[2001:db8::1]:443"}) {
    EXPECT_FALSE(findFlaw(Syntax::host_pattern, good)) << good;
  }
  for (const char* bad : {"",
                          ".",
                          "*.",
                          "..",
                          "a..b",
                          "*.*.b",
                          "a.*.b",
                          "*b.c",
                          "-a.b",
                          "a-.b",
                          "a b",
                          "a/b",
                          "http://a.b",
                          "a.b:0",
                          "a.b:65536",
                          "a.b:",
                          "a.b:443:1",
                          "b\xC3\xBC"
                          "cher.example",
                          "1.2.3",
                          "1.2.3.4.5",
                          "256.1.1.1",
                          "0x7f.1",
                          "2130706433",
                          "1.2.3.4/8",
                          "a\n.b",
                          "[1.2.3",
                          "a.0x1"}) {
    EXPECT_TRUE(findFlaw(Syntax::host_pattern, bad)) << bad;
  }
}

TEST(Syntax, ReachableHostIsNotThisMachine) {
  for (const char* bad :
       {"localhost", "localhost:80", "LocalHost.", "a.localhost", "*.localhost", "127.0.0.1", "127.1.2.3:5", "::1",
        "[::1]", "[::1]:80", "::ffff:127.0.0.1", "0.0.0.0", "::", "localhost.localdomain"}) {
    const auto flaw = findFlaw(Syntax::reachable_host, bad);
    ASSERT_TRUE(flaw) << bad;
    EXPECT_NE(flaw->hint.find("--host-port"), std::string::npos) << bad;
  }
  for (const char* good :
       {"example.org", "localhost.example.org:80", "128.0.0.1", "10.0.0.1", "[2001:db8::1]:443", "*"}) {
    EXPECT_FALSE(findFlaw(Syntax::reachable_host, good)) << good;
  }
  EXPECT_TRUE(findFlaw(Syntax::single_host, "localhost"));
  EXPECT_FALSE(findFlaw(Syntax::host_pattern, "localhost")) << "it may be denied";
}

TEST(Syntax, DirectoryIsInsideOrRelative) {
  for (const char* good : {"", "src", "./src/", "/tmp", "a/b"}) EXPECT_FALSE(findFlaw(Syntax::directory, good)) << good;
  for (const char* bad : {"..", "a/../b", "~/x", "/../etc"}) EXPECT_TRUE(findFlaw(Syntax::directory, bad)) << bad;
}

TEST(Syntax, PortIsNumberOrRange) {
  for (const char* good : {"1", "443", "65535", "8000-8010", "80-80"})
    EXPECT_FALSE(findFlaw(Syntax::port, good)) << good;
  for (const char* bad :
       {"", "0", "65536", "99999999999", "-", "80-", "-80", "81-80", "80-90-100", "http", "+80", " 80", "0-10"}) {
    EXPECT_TRUE(findFlaw(Syntax::port, bad)) << bad;
  }
}

TEST(Syntax, HostnameHasLettersDigitsAndInnerHyphens) {
  for (const char* good : {"sandbox", "a", "a-b.c", "host1"}) EXPECT_FALSE(findFlaw(Syntax::hostname, good)) << good;
  for (const char* bad : {"", "-a", "a-", "a_b", "a b", "a.", "1234", "a/b"})
    EXPECT_TRUE(findFlaw(Syntax::hostname, bad)) << bad;
  EXPECT_TRUE(findFlaw(Syntax::hostname, std::string(65, 'a')));
}

TEST(Syntax, ProxyUrlNeedsHttpHostAndPort) {
  for (const char* good : {"", "http://proxy:3128", "http://10.0.0.1:80", "http://[2001:db8::1]:8080"}) {
    EXPECT_FALSE(findFlaw(Syntax::proxy_url, good)) << good;
  }
  for (const char* bad :
       {"proxy:3128", "https://proxy:1", "http://proxy", "http://proxy:0", "http://*:80", "http://u@p:80"}) {
    EXPECT_TRUE(findFlaw(Syntax::proxy_url, bad)) << bad;
  }
}

TEST(Syntax, PathsCompareNormalised) {
  EXPECT_EQ(normalPath("//a/./b//"), "/a/b");
  EXPECT_EQ(normalPath("/"), "/");
  EXPECT_TRUE(isWithin("/a/b", "/a"));
  EXPECT_FALSE(isWithin("/ab", "/a"));
  EXPECT_TRUE(isWithin("/a", "/"));
}

}  // namespace caisson::policy
