#include "supervise/limits/task_limit.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;
using Clock = TaskLedger::Clock;

TEST(TaskLedger, ManyCallersAtOnceDoNotExceedTheLimit) {
  TaskLedger ledger(10);
  const auto now = Clock::now();
  int allowed = 0;
  // Their tasks do not exist yet, so every count is the same.
  for (pid_t caller = 1; caller <= 100; ++caller) allowed += ledger.allows(caller, now, [] { return 4; }) ? 1 : 0;
  EXPECT_EQ(allowed, 6);
}

TEST(TaskLedger, FloodOfRefusedCallsIsRarelyCounted) {
  TaskLedger ledger(10);
  const auto start = Clock::now();
  int counts = 0, allowed = 0;
  for (int call = 0; call < 10'000; ++call) {
    const auto now = start + std::chrono::microseconds(call);
    allowed += ledger.allows(call, now, [&] { return ++counts, 10; }) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 0);
  EXPECT_LE(counts, 6) << "in 10 ms";
}

TEST(TaskLedger, OneCallerAfterAnotherMayUseTheWholeLimit) {
  TaskLedger ledger(2);
  auto now = Clock::now();
  for (int call = 0; call < 50; ++call) {
    EXPECT_TRUE(ledger.allows(7, now, [] { return 1; })) << "its earlier children have exited: " << call;
    now += milliseconds(1);
  }
  EXPECT_FALSE(ledger.allows(8, now, [] { return 2; }));
  EXPECT_TRUE(ledger.allows(8, now + milliseconds(200), [] { return 1; }));
}

TEST(TaskLedger, CountingNearTheLimitSlowsCallersDown) {
  TaskLedger ledger(10);
  const auto slowly = [] {
    const auto end = Clock::now() + milliseconds(2);
    while (Clock::now() < end) {
    }
    return 9;
  };
  const auto now = Clock::now();
  EXPECT_TRUE(ledger.allows(1, now, slowly));
  (void)ledger.takePause();
  EXPECT_FALSE(ledger.allows(2, now, slowly));
  EXPECT_GE(ledger.takePause(), milliseconds(10));
}

}  // namespace
}  // namespace caisson::supervise
