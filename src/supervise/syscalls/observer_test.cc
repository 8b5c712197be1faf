#include "supervise/syscalls/observer.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

TEST(Observer, NormalisesPaths) {
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

}  // namespace
}  // namespace caisson::supervise
