#include "session/commit/commit_filter.h"

#include <gtest/gtest.h>

namespace caisson::session {

TEST(CommitFilter, KnowsLinksThatLeadOut) {
  EXPECT_TRUE(leadsOut("a", "/etc/passwd"));
  EXPECT_TRUE(leadsOut("a", "../x"));
  EXPECT_TRUE(leadsOut("d/a", "../../x"));
  EXPECT_TRUE(leadsOut("d/a", "x/../../../y"));
  EXPECT_FALSE(leadsOut("a", "b"));
  EXPECT_FALSE(leadsOut("d/a", "../b"));
  EXPECT_FALSE(leadsOut("d/a", "./b/../c"));
}

}  // namespace caisson::session
