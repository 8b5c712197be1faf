#include "service/clock.h"

#include <gtest/gtest.h>

namespace caisson::service {
namespace {

TEST(Instant, SettingTheClockChangesNothingUntilAReboot) {
  const Instant begin{.wall = 1000, .boot = 50, .boot_id = "a"};
  EXPECT_EQ((Instant{.wall = 900'000'000, .boot = 60, .boot_id = "a"}).since(begin), 10);
  EXPECT_EQ((Instant{.wall = 1, .boot = 60, .boot_id = "a"}).since(begin), 10);
  EXPECT_EQ((Instant{.wall = 1500, .boot = 3, .boot_id = "b"}).since(begin), 500);
  EXPECT_EQ((Instant{.wall = 1500, .boot = 60}).since({.wall = 1000, .boot = 50}), 500);
}

TEST(Instant, IsReadAsWritten) {
  const Instant now = Instant::now().after(7);
  const Json value = describeInstant(now);
  EXPECT_EQ(now.since(readInstant(&value)), 0);
  EXPECT_GT(now.since(readInstant(nullptr)), 1'000'000'000);
}

}  // namespace
}  // namespace caisson::service
