#include "host/subordinate_ids.h"

#include <gtest/gtest.h>

namespace caisson::host {
namespace {

TEST(SubordinateIds, RangeIsFoundByNameOrNumber) {
  const char* text = "other:1:5\nsomeone:100000:65536\n1234:300000:10\n";
  const auto by_name = parseIdRange(text, "someone", 7);
  ASSERT_TRUE(by_name);
  EXPECT_EQ(by_name->first, 100000U);
  EXPECT_EQ(by_name->count, 65536U);
  const auto by_number = parseIdRange(text, "other", 1234);
  ASSERT_TRUE(by_number);
  EXPECT_EQ(by_number->first, 300000U);
}

TEST(SubordinateIds, LargestRangeIsTaken) {
  const auto range = parseIdRange("someone:100000:10\nsomeone:200000:20\nsomeone:300000:5", "someone", 1);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 200000U);
}

TEST(SubordinateIds, BadLinesAreIgnored) {
  for (const char* text :
       {"", "someone", "someone:", "someone:1", "someone:x:1", "someone:100000:0", "someone:0:10", "someone:-5:10",
        "someone:4294967290:10", "someone:100000:10x", ":100000:10", "someone2:100000:10"}) {
    EXPECT_FALSE(parseIdRange(text, "someone", 99)) << text;
  }
}

TEST(SubordinateIds, AccountIsFoundByNumber) {
  const char* passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nsomeone:x:1000:1001::/home/someone:/bin/sh\n";
  const auto account = parseAccount(passwd, 1000);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->name, "someone");
  EXPECT_EQ(account->gid, 1001U);
  EXPECT_FALSE(parseAccount(passwd, 1001));
}

TEST(SubordinateIds, OnlyAPrivilegedProgramOfRootIsAHelper) {
  EXPECT_NE(whyNotHelper("/nonexistent/newuidmap").find("missing"), std::string::npos);
  EXPECT_NE(whyNotHelper("/bin/sh").find("neither a setuid bit nor file capabilities"), std::string::npos);
  EXPECT_NE(whyNotHelper("/tmp").find("not root's alone"), std::string::npos);
}

TEST(SubordinateIds, HelperThatRefusesIsAnErrorWithItsMessage) {
  plan::Identity identity;
  identity.uid_helper = identity.gid_helper = "/bin/false";
  EXPECT_FALSE(mapSubordinateIds(identity, 1));
  identity.uid_helper = identity.gid_helper = "/bin/cat";  // complains about its arguments
  const auto refused = mapSubordinateIds(identity, 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("No such file"), std::string::npos) << refused.error().message();
}

}  // namespace
}  // namespace caisson::host
