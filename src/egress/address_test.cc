#include "egress/address.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

std::string_view rangeOf(std::string_view text) {
  const auto address = Address::parse(text);
  EXPECT_TRUE(address) << text;
  return address ? blockedRange(*address) : "unparsed";
}

TEST(Address, HasOneRepresentation) {
  EXPECT_EQ(Address::parse("::ffff:192.0.2.7"), Address::parse("192.0.2.7"));
  EXPECT_EQ(Address::parse("::ffff:c000:207")->text(), "192.0.2.7");
  EXPECT_EQ(Address::parse("2001:DB8:0:0::1")->text(), "2001:db8::1");
}

TEST(Address, ParsesOnlyTheStrictForms) {
  for (const char* text :
       {"", "1.2.3", "01.2.3.4", "1.2.3.4.5", "0x7f.0.0.1", "1.2.3.4 ", "[::1]", "fe80::1%eth0", ":::"}) {
    EXPECT_FALSE(Address::parse(text)) << text;
  }
  EXPECT_FALSE(Address::parse(std::string_view("1.2.3.4\0", 8)));
}

TEST(BlockedRange, CoversEveryKindOfAddressThatIsNotPublic) {
  CONFORMS("R-NETWORK-4");
  const std::pair<const char*, const char*> cases[] = {
      {"10.0.0.1", "private"},
      {"172.31.255.255", "private"},
      {"192.168.1.1", "private"},
      {"127.0.0.53", "loopback"},
      {"::1", "loopback"},
      {"169.254.1.1", "link-local"},
      {"fe80::1", "link-local"},
      {"100.64.0.1", "carrier-grade NAT"},
      {"169.254.169.254", "cloud metadata"},
      {"100.100.100.200", "cloud metadata"},
      {"fd00:ec2::254", "cloud metadata"},
      {"0.0.0.0", "reserved"},
      {"::", "reserved"},
      {"255.255.255.255", "reserved"},
      {"240.0.0.1", "reserved"},
      {"224.0.0.251", "multicast"},
      {"ff02::1", "multicast"},
      {"192.0.2.1", "documentation"},
      {"2001:db8::1", "documentation"},
      {"3fff::1", "documentation"},
      {"198.18.0.1", "benchmark"},
      {"198.19.255.255", "benchmark"},
      {"fd12::1", "private"},
      {"fec0::1", "private"},
      {"2001::1", "Teredo"},
      {"::127.0.0.1", "reserved"},
      {"100::1", "reserved"},
      {"64:ff9b:1::1", "private"},
  };
  for (const auto& [text, range] : cases) EXPECT_EQ(rangeOf(text), range) << text;
}

TEST(BlockedRange, CoversFormsThatEmbedAnIpv4Address) {
  CONFORMS("R-NETWORK-4");
  EXPECT_EQ(rangeOf("::ffff:169.254.169.254"), "cloud metadata");
  EXPECT_EQ(rangeOf("64:ff9b::10.0.0.1"), "private");
  EXPECT_EQ(rangeOf("64:ff9b::a9fe:a9fe"), "cloud metadata");
  EXPECT_EQ(rangeOf("2002:7f00:1::1"), "loopback");
  EXPECT_EQ(rangeOf("2002:c0a8:101::"), "private");
}

TEST(BlockedRange, LeavesPublicAddressesAlone) {
  for (const char* text : {"1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111",
                           "64:ff9b::101:101", "2002:101:101::1", "169.253.0.1", "223.255.255.255"}) {
    EXPECT_EQ(rangeOf(text), "") << text;
  }
}

TEST(BlockedRange, ExceptionsCannotOpenMetadataOrMulticast) {
  CONFORMS("R-NETWORK-5");
  EXPECT_TRUE(mayBeExcepted("private"));
  EXPECT_TRUE(mayBeExcepted("loopback"));
  for (const char* range : {"cloud metadata", "multicast", "reserved", "Teredo"}) EXPECT_FALSE(mayBeExcepted(range));
}

}  // namespace
}  // namespace caisson::egress
