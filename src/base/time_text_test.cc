#include "base/time_text.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

using std::chrono::milliseconds;
using Time = std::chrono::system_clock::time_point;

TEST(TimeText, IsUtcInWholeSecondsOrMilliseconds) {
  EXPECT_EQ(utcText(std::int64_t{0}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utcText(std::int64_t{1'795'000'000}), "2026-11-18T11:06:40Z");
  EXPECT_EQ(utcText(Time(milliseconds(1'795'000'000'007))), "2026-11-18T11:06:40.007Z");
  EXPECT_EQ(utcText(Time(milliseconds(1'795'000'000'999))), "2026-11-18T11:06:40.999Z");
}

TEST(TimeText, TimesBefore1970RoundDown) {
  EXPECT_EQ(utcText(std::int64_t{-1}), "1969-12-31T23:59:59Z");
  EXPECT_EQ(utcText(Time(milliseconds(-1))), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace caisson
