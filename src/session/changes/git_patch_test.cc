#include "session/changes/git_patch.h"

#include <gtest/gtest.h>

namespace caisson::session {
namespace {

using Mode = PatchSide::Mode;

std::string patch(const PatchSide& before, const PatchSide& now, PatchOptions options = {}) {
  DiffBudget budget;
  return makePatch(before, now, 87, options, budget).text;
}

TEST(GitPatch, ShowsAModifiedFile) {
  EXPECT_EQ(
      patch({Mode::file, "f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}, {Mode::file, "f", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"}),
      "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(GitPatch, JoinsHunksWhoseContextTouches) {
  const std::string before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
  EXPECT_EQ(patch({Mode::file, "f", before}, {Mode::file, "f", "x\n2\n3\n4\n5\n6\n7\n8\ny\n"}),
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n"
            "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n");
  EXPECT_EQ(patch({Mode::file, "f", before}, {Mode::file, "f", "x\n2\n3\n4\n5\n6\n7\ny\n9\n"}),
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n 9\n");
}

TEST(GitPatch, ShowsCreationDeletionModeAndRename) {
  EXPECT_EQ(patch({}, {Mode::executable, "n", "a"}),
            "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n"
            "\\ No newline at end of file\n");
  EXPECT_EQ(patch({Mode::file, "n", "a\n"}, {}),
            "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
  EXPECT_EQ(patch({Mode::file, "n", "a\n"}, {Mode::executable, "n", "a\n"}),
            "diff --git a/n b/n\nold mode 100644\nnew mode 100755\n");
  EXPECT_EQ(patch({Mode::file, "old", "a\n"}, {Mode::file, "new name", "a\n"}),
            "diff --git a/old b/new name\nsimilarity index 87%\nrename from old\nrename to new name\n");
}

TEST(GitPatch, ShowsAChangeOfFileTypeAsDeletionAndCreation) {
  EXPECT_EQ(patch({Mode::file, "n", "a\n"}, {Mode::link, "n", "to"}),
            "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
            "diff --git a/n b/n\nnew file mode 120000\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+to\n"
            "\\ No newline at end of file\n");
}

TEST(GitPatch, NamesBinaryFilesAndCarriesTheirContentOnRequest) {
  const std::string_view binary("\0x", 2);
  EXPECT_EQ(patch({}, {Mode::file, "b", binary}),
            "diff --git a/b b/b\nnew file mode 100644\nBinary files /dev/null and b/b differ\n");
  EXPECT_EQ(patch({}, {Mode::file, "b", "x\n"}, {.binary_content = true}).find("GIT binary"), std::string::npos);
  const std::string full = patch({}, {Mode::file, "b", binary}, {.binary_content = true});
  EXPECT_NE(full.find("index " + std::string(40, '0') + ".." + blobId(binary)), std::string::npos) << full;
  EXPECT_NE(full.find("GIT binary patch\nliteral 2\n"), std::string::npos) << full;
}

TEST(GitPatch, NamesTheObjectsThatGitNames) {
  EXPECT_EQ(blobId(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(blobId("test content\n"), "d670460b4b4aece5915caf5c68d12f560a9fe3e4");
  EXPECT_EQ(blobId(std::string(1000, 'a')).size(), 40U);
}

TEST(QuotePath, EscapesEverythingButPrintableAscii) {
  EXPECT_EQ(quotePath("a/", "plain name"), "a/plain name");
  EXPECT_EQ(quotePath("a/", "two\nlines"), "\"a/two\\nlines\"");
  EXPECT_EQ(quotePath("b/", "\x1b[31m"), "\"b/\\033[31m\"");
  EXPECT_EQ(quotePath("", "q\"b\\"), "\"q\\\"b\\\\\"");
  EXPECT_EQ(quotePath("", "\xE2\x80\xAEtxt"), "\"\\342\\200\\256txt\"") << "a right-to-left override";
}

}  // namespace
}  // namespace caisson::session
