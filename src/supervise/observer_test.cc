#include "supervise/observer.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

TEST(Observer, MakesPathsPlain) {
  EXPECT_EQ(plainPath("/a/b", "c"), "/a/b/c");
  EXPECT_EQ(plainPath("/a/b", "../c/./d//e/"), "/a/c/d/e");
  EXPECT_EQ(plainPath("/a", "/x/../../y"), "/y");
  EXPECT_EQ(plainPath("", "/"), "/");
  EXPECT_EQ(plainPath("/", ".."), "/");
  EXPECT_EQ(plainPath("", "relative"), "") << "relative to a place that is not known";
  EXPECT_EQ(plainPath("/a", ""), "");
  EXPECT_EQ(plainPath("/a", "b\nc"), "") << "would be a separate line";
  EXPECT_EQ(plainPath("/a", "\x1b[2J"), "");
  EXPECT_EQ(plainPath("/a", "\x7f"), "");
}

TEST(Observer, TakesNothingForShownThatTheFilterRefuses) {
  plan::Plan plan;
  plan.syscalls.emplace();
  plan.syscalls->rules = {{1, {}, plan::kObserve}, {2, {}, plan::notify(1)}, {3, {}, plan::kAllow}};
  const Observer observer(plan);
  Attempt attempt;
  attempt.architecture = plan::nativeArchitecture();
  attempt.number = 1;
  EXPECT_TRUE(observer.isShown(attempt));
  attempt.number = 2;
  EXPECT_FALSE(observer.isShown(attempt));
  attempt.number = 4;
  EXPECT_FALSE(observer.isShown(attempt));
  attempt.number = 1;
  attempt.architecture ^= 1;
  EXPECT_FALSE(observer.isShown(attempt)) << "a foreign call";
}

}  // namespace
}  // namespace caisson::supervise
