#include "supervise/syscalls/observed_calls.h"

#include <gtest/gtest.h>

#include "plan/syscall_filter.h"

namespace caisson::supervise {
namespace {

TEST(ObservedCalls, AreTheCallsThatTheFilterObserves) {
  plan::Plan plan;
  plan.syscalls.emplace();
  plan.syscalls->rules = {{1, {}, plan::kObserve}, {2, {}, plan::notify(1)}, {3, {}, plan::kAllow}};
  const ObservedCalls observed(plan);
  Attempt attempt;
  attempt.architecture = plan::nativeArchitecture();
  attempt.number = 1;
  EXPECT_TRUE(observed.contains(attempt));
  attempt.number = 2;
  EXPECT_FALSE(observed.contains(attempt));
  attempt.number = 4;
  EXPECT_FALSE(observed.contains(attempt));
  attempt.number = 1;
  attempt.architecture ^= 1;
  EXPECT_FALSE(observed.contains(attempt)) << "a foreign call";
}

TEST(ObservedCalls, AreEmptyWithoutAFilter) {
  Attempt attempt;
  attempt.architecture = plan::nativeArchitecture();
  EXPECT_FALSE(ObservedCalls(plan::Plan()).contains(attempt));
}

}  // namespace
}  // namespace caisson::supervise
