#include "egress/budget.h"

#include <gtest/gtest.h>

#include "egress/names.h"
#include "support/conforms.h"

namespace caisson::egress {
namespace {

using namespace std::chrono_literals;
using Verdict = LookupBudget::Verdict;

TEST(LookupBudget, LessThanAKilobyteOfTextLeavesInAnyMinute) {
  CONFORMS("R-NETWORK-11");
  const auto start = LookupBudget::Clock::now();
  for (int offset : {0, 30, 59, 90}) {  // independent of where the minute begins
    std::size_t out = 0;
    LookupBudget fresh(100000);
    for (int tenth = 0; tenth < 600; ++tenth) {
      const auto now = start + std::chrono::seconds(offset) + tenth * 100ms;
      const std::string name = std::to_string(offset) + "-" + std::to_string(tenth);
      if (fresh.charge(name, 20, now) == Verdict::fine) out += 20;
    }
    EXPECT_LE(out, 1000U);
    EXPECT_GT(out, 400U);
  }
}

TEST(LookupBudget, KnownAndExactNamesCostNothing) {
  LookupBudget budget(100000);
  const auto now = LookupBudget::Clock::now();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(budget.charge("known", 300, now), Verdict::fine);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(budget.charge("exact", 0, now), Verdict::fine);
  EXPECT_EQ(budget.charge("another", 300, now), Verdict::too_much_text);
}

TEST(LookupBudget, QueriesAreLimitedPerMinute) {
  CONFORMS("R-NETWORK-11");
  LookupBudget budget(3);
  const auto now = LookupBudget::Clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(budget.charge("a", 0, now), Verdict::fine);
  EXPECT_EQ(budget.charge("a", 0, now), Verdict::too_many);
  EXPECT_EQ(budget.charge("a", 0, now + 61s), Verdict::fine);
}

TEST(SyntheticNames, MapToOneAddressPerFamilyAndBack) {
  SyntheticNames names;
  const auto four = names.addressOf("a.example", true);
  const auto six = names.addressOf("a.example", false);
  ASSERT_TRUE(four && six);
  EXPECT_EQ(names.nameOf(*four), "a.example");
  EXPECT_EQ(names.nameOf(*six), "a.example");
  EXPECT_TRUE(SyntheticNames::isSynthetic(*four) && SyntheticNames::isSynthetic(*six));
  EXPECT_NE(*names.addressOf("b.example", true), *four);
  EXPECT_EQ(names.nameOf(*Address::parse("198.18.99.99")), "");
  EXPECT_EQ(names.nameOf(*Address::parse("10.0.0.1")), "");
  EXPECT_FALSE(SyntheticNames::isSynthetic(*Address::parse("198.20.0.1")));
}

TEST(SyntheticNames, AreBounded) {
  SyntheticNames names;
  std::size_t given = 0;
  while (given < 100000 && names.addressOf("n" + std::to_string(given) + ".example", true)) ++given;
  EXPECT_LT(given, 100000U);
}

}  // namespace
}  // namespace caisson::egress
