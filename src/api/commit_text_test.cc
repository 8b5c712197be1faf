#include "api/commit_text.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

ManifestEntry entry(const std::string& path, const std::string& reason = {}) {
  ManifestEntry made;
  made.path = path;
  made.kind = ChangeKind::added;
  made.type = "regular file";
  made.size = 5;
  made.mode = 0755;
  made.sha256 = std::string(64, 'a');
  made.held_unless_named = !reason.empty();
  made.held_reason = reason;
  return made;
}

TEST(CommitText, LineNamesKindSizeAndMode) {
  EXPECT_EQ(commitLine(entry("src/a.sh")), "added src/a.sh (5 bytes, executable, sha256 aaaaaaaaaaaa)");
  ManifestEntry link = entry("l");
  link.target = "../x";
  EXPECT_EQ(commitLine(link), "added l -> ../x");
}

TEST(CommitText, NamesCannotAddOrReorderLines) {
  EXPECT_EQ(commitLine(entry("a\nadded safe\x1b[2J\xe2\x80\xae")),
            R"(added $'a\nadded safe\033[2J\342\200\256' (5 bytes, executable, sha256 aaaaaaaaaaaa))");
  ManifestEntry link = entry("l");
  link.target = "x\ny";
  EXPECT_EQ(commitLine(link), R"(added l -> $'x\ny')");
  CommitReport report;
  report.applied = {entry("h\nk", "git runs it")};
  EXPECT_NE(commitCaution(report, 5).find(R"($'h\nk' (git runs it))"), std::string::npos);
}

TEST(CommitText, CautionCountsWhatItDoesNotList) {
  CommitReport report;
  EXPECT_EQ(commitCaution(report, 2), "");
  report.applied = {entry("plain"), entry("a", "r"), entry("b", "r"), entry("c", "r")};
  EXPECT_TRUE(commitCaution(report, 2).ends_with("a (r), b (r) and 1 more")) << commitCaution(report, 2);
  EXPECT_EQ(commitTotals(report), "4 changes (4 added, 0 modified, 0 deleted, 0 bytes)");
}

}  // namespace
}  // namespace caisson
