#include "egress/host_name.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

std::string canonical(std::string_view raw) {
  const auto host = canonicalHost(raw);
  return host ? host->text() : "refused: " + std::string(host.error());
}

bool refused(std::string_view raw) { return !canonicalHost(raw).has_value(); }

TEST(HostName, CaseAndOneTrailingDotDoNotMatter) {
  EXPECT_EQ(canonical("Example.ORG"), "example.org");
  EXPECT_EQ(canonical("example.org."), "example.org");
  EXPECT_TRUE(refused("example.org.."));
  EXPECT_TRUE(refused("."));
  EXPECT_TRUE(refused("a..b"));
  EXPECT_TRUE(refused(".example.org"));
}

TEST(HostName, RejectsAmbiguousNames) {
  using namespace std::string_view_literals;
  for (const std::string_view raw : {""sv,
                                     "a\0.example.org"sv,
                                     "example.org\0.evil"sv,
                                     "a b"sv,
                                     "a\r\nb"sv,
                                     "a\tb"sv,
                                     "user@example.org"sv,
                                     "example.org/"sv,
                                     "example.org#x"sv,
                                     "example.org?x"sv,
                                     "a%2eb"sv,
                                     "a\\b"sv,
                                     "a,b"sv,
                                     "ex\xc3\xa4mple.org"sv,
                                     "\xef\xbc\x8e"sv,
                                     "-a.org"sv,
                                     "a-.org"sv,
                                     "a:80"sv,
                                     "[example.org]"sv,
                                     "[::1"sv,
                                     "fe80::1%25eth0"sv,
                                     "[fe80::1%lo]"sv,
                                     "*.example.org"sv,
                                     "a\x7f"sv}) {
    EXPECT_TRUE(refused(raw)) << raw;
  }
  EXPECT_TRUE(refused(std::string(64, 'a') + ".org"));
  std::string longest;
  while (longest.size() < 260) longest += "abcdefg.";
  EXPECT_TRUE(refused(longest + "org"));
}

TEST(HostName, AddressesInEveryNotationAreTheSameAddress) {
  for (const char* raw : {"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.01", "017700000001",
                          "127.0.0.1.", "[::ffff:127.0.0.1]", "::ffff:7f00:1", "0X7F.1"}) {
    EXPECT_EQ(canonical(raw), "127.0.0.1") << raw;
  }
  EXPECT_EQ(canonical("[2001:DB8::1]"), "2001:db8::1");
}

TEST(HostName, NameEndingInANumberIsAnAddressOrInvalid) {
  for (const char* raw : {"example.1", "256.1.1.1", "1.2.3.4.5", "1.2.3.08", "4294967296", "1.2.3.0x", "a.0x7f", "1..2",
                          "127.0.0.1.0x"}) {
    const auto host = canonicalHost(raw);
    EXPECT_TRUE(!host || host->address) << raw << " became a name";
  }
  EXPECT_TRUE(refused("example.1"));
  EXPECT_TRUE(refused("256.1.1.1"));
  EXPECT_TRUE(refused("1.2.3.08"));
}

TEST(HostName, InternationalNamesAreAcceptedOnlyInValidPunycode) {
  EXPECT_EQ(canonical("xn--bcher-kva.example"), "xn--bcher-kva.example");
  EXPECT_EQ(canonical("XN--BCHER-KVA.example"), "xn--bcher-kva.example");
  EXPECT_EQ(canonical("xn--fiqs8s"), "xn--fiqs8s");
  for (const char* raw : {"xn--", "xn--example-", "xn--a", "xn--99999999", "xn--a-\x80"})
    EXPECT_TRUE(refused(raw)) << raw;
}

TEST(HostName, UnderscoresAreAllowed) { EXPECT_EQ(canonical("_acme.example.org"), "_acme.example.org"); }

TEST(HostName, LocalNamesAreRecognised) {
  CONFORMS("R-NETWORK-6");
  for (const char* name : {"localhost", "a.localhost", "printer.local", "metadata.google.internal", "internal"}) {
    EXPECT_TRUE(isLocalName(name)) << name;
  }
  for (const char* name : {"local.example.org", "mylocal", "notinternal", "example.org"})
    EXPECT_FALSE(isLocalName(name));
}

TEST(Authority, TakesAPortOrTheDefault) {
  EXPECT_EQ(canonicalAuthority("example.org:8443", 443)->port, 8443);
  EXPECT_EQ(canonicalAuthority("example.org", 443)->port, 443);
  EXPECT_EQ(canonicalAuthority("[::1]:80", 0)->host.text(), "::1");
  EXPECT_EQ(canonicalAuthority("[2001:db8::1]", 443)->port, 443);
  for (const char* raw : {"example.org", "example.org:", "example.org:0", "example.org:65536", "example.org:080",
                          "example.org:80:90", "example.org:+80", "example.org: 80", ":80", "[::1]x:80", "a@b:80"}) {
    EXPECT_FALSE(canonicalAuthority(raw, 0)) << raw;
  }
}

}  // namespace
}  // namespace caisson::egress
