#include "egress/attempt_limiter.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

using std::chrono::seconds;

constexpr AttemptLimiter::Clock::time_point kStart{seconds(1'000'000)};

TEST(AttemptLimiter, ConnectionsThatTheHostEndsAreNotLimited) {
  AttemptLimiter limiter;
  EXPECT_TRUE(limiter.mayConnect(kStart));
  EXPECT_TRUE(limiter.mayLinger(kStart));
}

TEST(AttemptLimiter, PortsThatStayInUseAreLimitedForAMinute) {
  AttemptLimiter limiter;
  for (std::uint32_t i = 0; i < AttemptLimiter::kLingering; ++i) {
    EXPECT_TRUE(limiter.mayConnect(kStart)) << i;
    EXPECT_EQ(limiter.mayLinger(kStart), i < AttemptLimiter::kOrderly) << i;
    limiter.countLingering(kStart);
  }
  EXPECT_FALSE(limiter.mayConnect(kStart));
  EXPECT_FALSE(limiter.mayConnect(kStart + seconds(59)));
  EXPECT_TRUE(limiter.mayConnect(kStart + seconds(61)));
  EXPECT_TRUE(limiter.mayLinger(kStart + seconds(61)));
}

TEST(AttemptLimiter, ConnectionsWithoutAResponseAreLimited) {
  AttemptLimiter limiter;
  for (std::uint32_t i = 0; i < AttemptLimiter::kFruitless; ++i) limiter.countFruitless(kStart + seconds(i % 30));
  EXPECT_FALSE(limiter.mayConnect(kStart + seconds(40)));
  EXPECT_TRUE(limiter.mayConnect(kStart + seconds(75)));
  EXPECT_TRUE(limiter.mayConnect(kStart + std::chrono::hours(24)));
}

}  // namespace
}  // namespace caisson::egress
