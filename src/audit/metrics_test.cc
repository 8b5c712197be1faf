#include "audit/metrics.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "audit/log.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::audit {
namespace {

Event finished(double seconds) {
  Event event{EventType::sandbox_exited, Severity::info, "cs-x", {}};
  event.measures =
      Measures{.outcome = 0, .wall_seconds = seconds, .cpu_seconds = seconds / 2, .peak_memory_bytes = 3 << 20};
  return event;
}

TEST(Metrics, CountAndSortIntoBuckets) {
  CONFORMS("R-AUDIT-14");
  Metrics metrics;
  for (const double seconds : {0.001, 0.003, 0.003, 700.0}) count(metrics, finished(seconds), 600);
  EXPECT_EQ(metrics.of(EventType::sandbox_exited), 4U);
  EXPECT_EQ(metrics.lifetime.count, 4U);
  EXPECT_EQ(metrics.lifetime.buckets[0], 1U);
  EXPECT_EQ(metrics.lifetime.buckets[1], 2U);
  EXPECT_EQ(metrics.lifetime.buckets[12], 1U);
  EXPECT_DOUBLE_EQ(metrics.lifetime.quantile(0.5, kSecondsBounds), 0.005);
  EXPECT_EQ(metrics.memory.buckets[1], 4U);
}

TEST(Metrics, RateIgnoresOldEvents) {
  Metrics metrics;
  const Event created{EventType::sandbox_created, Severity::info, "cs-x", {}};
  for (int i = 0; i < 120; ++i) count(metrics, created, 60'000);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastMinute(60'000), 2.0);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastHour(60'000), 120 / 3600.0);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastMinute(60'000 + 120), 0.0);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastHour(60'000 + 7200), 0.0);
}

TEST(Metrics, RateOfLastMinuteSpansTwoClockMinutes) {
  CONFORMS("R-AUDIT-13");
  Metrics metrics;
  const Event created{EventType::sandbox_created, Severity::info, "cs-x", {}};
  for (int i = 0; i < 60; ++i) count(metrics, created, 60'059);  // the last second of a calendar minute
  EXPECT_DOUBLE_EQ(metrics.rateOfLastMinute(60'060), 1.0);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastMinute(60'118), 1.0);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastMinute(60'119), 0.0);
  EXPECT_DOUBLE_EQ(metrics.rateOfLastHour(63'600), 60 / 3600.0);  // its minute lies wholly in the hour
  EXPECT_DOUBLE_EQ(metrics.rateOfLastHour(63'630), 30 / 3600.0);  // half of it does
}

TEST(Metrics, MergeEqualsCountingTogether) {
  const Event created{EventType::sandbox_created, Severity::info, "cs-x", {}};
  Metrics one, other, both;
  const auto countIn = [&](Metrics& metrics, const Event& event, std::uint64_t now) {
    count(metrics, event, now);
    count(both, event, now);
  };
  countIn(one, created, 60'000);
  countIn(one, finished(0.003), 60'001);
  countIn(other, created, 60'030);
  countIn(other, created, 63'600);  // an hour later: the same slot of the ring
  countIn(other, finished(3), 63'601);
  merge(one, other);
  EXPECT_EQ(std::memcmp(&one, &both, sizeof(one)), 0);
  Metrics old;
  count(old, created, 100);
  merge(one, old);
  EXPECT_EQ(one.since, 100U);
  EXPECT_DOUBLE_EQ(one.rateOfLastMinute(63'600), 1 / 60.0) << "what is newer is kept";
}

TEST(Metrics, AgreeWithTheLogOverManyProcesses) {
  CONFORMS("R-AUDIT-14");
  const test::TempDir dir;
  const std::string path = dir / "audit";
  for (int writer = 0; writer < 4; ++writer) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto log = Log::open(path);
      for (int i = 0; log && i < 100; ++i) (void)log->append(finished(0.01));
      if (log) log->handOver();
      ::_exit(0);
    }
  }
  while (::wait(nullptr) > 0) {
  }
  const auto metrics = readMetrics(path);
  ASSERT_TRUE(metrics) << metrics.error().message();
  EXPECT_EQ(metrics->of(EventType::sandbox_exited), 400U);
  EXPECT_EQ(metrics->lifetime.count, 400U);
}

TEST(Metrics, DamagedFileStartsFromZero) {
  const test::TempDir dir;
  const std::string path = dir / "audit";
  auto log = Log::open(path);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(finished(1)));
  log->handOver();
  EXPECT_EQ(readMetrics(path)->of(EventType::sandbox_exited), 1U);
  std::ofstream(path + "/metrics") << "nonsense";
  EXPECT_EQ(readMetrics(path)->of(EventType::sandbox_exited), 0U);
  ASSERT_TRUE(log->append(finished(1)));
  log->handOver();
  EXPECT_EQ(readMetrics(path)->of(EventType::sandbox_exited), 1U);
}

}  // namespace
}  // namespace caisson::audit
