#include "egress/names.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

constexpr SyntheticNames::Clock::time_point kFirstMinute{std::chrono::hours(100)};

TEST(SyntheticNames, UnlistedNamesDoNotExhaustTheAddressesOfListedOnes) {
  SyntheticNames names;
  std::size_t given = 0;
  for (int i = 0; i < 20000; ++i) {
    given += names.addressOfUnlisted("x" + std::to_string(i) + ".test", kFirstMinute) ? 1 : 0;
  }
  EXPECT_EQ(given, 1024U);
  for (int i = 0; i < 15000; ++i) {
    const std::string name = "listed" + std::to_string(i) + ".test";
    const auto four = names.addressOf(name, true), six = names.addressOf(name, false);
    ASSERT_TRUE(four && six) << i;
    ASSERT_EQ(names.nameOf(*four), name);
    ASSERT_EQ(names.nameOf(*six), name);
  }
}

TEST(SyntheticNames, AddressOfAnUnlistedNameIsReusedOnlyLater) {
  SyntheticNames names;
  const auto first = names.addressOfUnlisted("first.test", kFirstMinute);
  ASSERT_TRUE(first);
  for (int i = 1; i < 1024; ++i) names.addressOfUnlisted(std::to_string(i) + ".test", kFirstMinute);
  EXPECT_FALSE(names.addressOfUnlisted("next.test", kFirstMinute + std::chrono::seconds(119)));
  EXPECT_EQ(names.nameOf(*first), "first.test");
  EXPECT_EQ(names.addressOfUnlisted("first.test", kFirstMinute + std::chrono::seconds(119)), first);
  const auto later = names.addressOfUnlisted("next.test", kFirstMinute + std::chrono::seconds(121));
  ASSERT_TRUE(later);
  EXPECT_NE(later, first) << "it was asked for again";
  EXPECT_EQ(names.nameOf(*later), "next.test");
  EXPECT_EQ(names.nameOf(*first), "first.test");
}

TEST(SyntheticNames, UnlistedNameThatIsAllowedGetsItsOwnAddress) {
  SyntheticNames names;
  const auto before = names.addressOfUnlisted("a.test", kFirstMinute);
  const auto after = names.addressOf("a.test", true);
  ASSERT_TRUE(before && after);
  EXPECT_NE(before, after);
  EXPECT_EQ(names.nameOf(*before), "a.test") << "programs may still have it";
  EXPECT_EQ(names.addressOfUnlisted("a.test", kFirstMinute), after);
  EXPECT_EQ(names.nameOf(*after), "a.test");
}

}  // namespace
}  // namespace caisson::egress
