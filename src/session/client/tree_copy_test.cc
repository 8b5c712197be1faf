#include "session/client/tree_copy.h"

#include <gtest/gtest.h>

namespace caisson::session {
namespace {

TEST(StaysInside, AcceptsLinksThatCannotLeaveTheTree) {
  EXPECT_TRUE(staysInside("a", 0));
  EXPECT_TRUE(staysInside("./a/b", 0));
  EXPECT_TRUE(staysInside("../a", 1));
  EXPECT_TRUE(staysInside("../../a/b", 2));
  EXPECT_TRUE(staysInside("..a/...", 0));
}

TEST(StaysInside, RefusesOthers) {
  EXPECT_FALSE(staysInside("", 0));
  EXPECT_FALSE(staysInside("/etc/passwd", 5));
  EXPECT_FALSE(staysInside("..", 0));
  EXPECT_FALSE(staysInside("../../a", 1));
  EXPECT_FALSE(staysInside("a/../../b", 5)) << "what is called a may be a link";
  EXPECT_FALSE(staysInside("./..", 0));
}

}  // namespace
}  // namespace caisson::session
