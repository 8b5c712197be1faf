#include "session/changes/line_merge.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

std::optional<std::string> merge(const std::string& base, const std::string& ours, const std::string& theirs) {
  DiffBudget budget;
  return mergeLines(base, ours, theirs, budget);
}

constexpr const char* kBase = "1\n2\n3\n4\n5\n6\n7\n";

TEST(MergeLines, KeepsChangesOfBothSides) {
  EXPECT_EQ(merge(kBase, "one\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\nseven\n"), "one\n2\n3\n4\n5\n6\nseven\n");
  EXPECT_EQ(merge(kBase, "1\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\nnew\n6\n7\n"), "1\n3\n4\n5\nnew\n6\n7\n");
}

TEST(MergeLines, ChangeOfOneSideIsThatSide) {
  EXPECT_EQ(merge(kBase, kBase, "x\n3\n"), "x\n3\n");
  EXPECT_EQ(merge(kBase, "x\n3\n", kBase), "x\n3\n");
  EXPECT_EQ(merge("", "", "new\n"), "new\n");
  EXPECT_EQ(merge(kBase, kBase, ""), "");
}

TEST(MergeLines, SameChangeOfBothSidesIsMadeOnce) {
  EXPECT_EQ(merge(kBase, "1\nX\n3\n4\n5\n6\n7\n", "1\nX\n3\n4\n5\n6\n7\n"), "1\nX\n3\n4\n5\n6\n7\n");
  EXPECT_EQ(merge(kBase, "1\nX\n3\n4\n5\n6\n7\n", "1\nX\n3\n4\n5\n6\nY\n"), "1\nX\n3\n4\n5\n6\nY\n");
}

TEST(MergeLines, ChangesThatTouchAreAConflict) {
  EXPECT_FALSE(merge(kBase, "1\nA\n3\n4\n5\n6\n7\n", "1\nB\n3\n4\n5\n6\n7\n")) << "the same line";
  EXPECT_FALSE(merge(kBase, "1\nA\n3\n4\n5\n6\n7\n", "1\n2\nB\n4\n5\n6\n7\n")) << "neighbours";
  EXPECT_FALSE(merge(kBase, "1\n2\nA\n3\n4\n5\n6\n7\n", "1\n2\nB\n3\n4\n5\n6\n7\n")) << "two insertions at one place";
  EXPECT_FALSE(merge(kBase, "1\n4\n5\n6\n7\n", "1\n2\nB\n4\n5\n6\n7\n")) << "one removed what the other changed";
  EXPECT_FALSE(merge("", "a\n", "b\n")) << "two new contents";
}

TEST(MergeLines, MissingNewlineAtTheEndStaysTheLastLine) {
  EXPECT_EQ(merge("1\n2\n3", "0\n1\n2\n3", "1\n2\n3\n4"), "0\n1\n2\n3\n4");
  EXPECT_EQ(merge("1\n2\n3\n", "1\n2\n3", "0\n2\n3\n"), "0\n2\n3");
  EXPECT_FALSE(merge("1\n2\n3", "1\n2\n3\n", "1\n2\n3\n4"));
}

TEST(MergeLines, WithoutABudgetMoreIsAConflictAndNothingIsLost) {
  DiffBudget budget{.steps = 0};
  EXPECT_FALSE(mergeLines("a\nb\nc\nd\ne\n", "b\na\nc\nd\ne\n", "a\nb\nc\ne\nd\n", budget) ==
               std::optional<std::string>("a\nb\nc\nd\ne\n"));
}

/// A few changes at random places.
std::vector<std::string> changed(const std::vector<std::string>& base, std::mt19937& random, const std::string& mark) {
  std::vector<std::string> lines = base;
  for (unsigned edits = random() % 4; edits > 0; --edits) {
    const std::size_t at = lines.empty() ? 0 : random() % lines.size();
    const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
    const std::string line = mark + std::to_string(random() % 1000) + "\n";
    switch (random() % 3) {
      case 0: lines.insert(place, line); break;
      case 1:
        if (!lines.empty()) *place = line;
        break;
      default:
        if (!lines.empty()) lines.erase(place);
    }
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

/// `git merge-file` without any configuration: its output, or nothing when there are conflicts.
std::optional<std::string> mergedByGit(const std::string& directory, const std::string& base, const std::string& ours,
                                       const std::string& theirs) {
  sys::fixtures::writeText(directory + "/base", base);
  sys::fixtures::writeText(directory + "/ours", ours);
  sys::fixtures::writeText(directory + "/theirs", theirs);
  const std::string command = "cd " + directory + " && GIT_CONFIG_NOSYSTEM=1 HOME=" + directory +
                              " git merge-file -q -p ours base theirs > merged";
  const int status = std::system(command.c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return sys::fixtures::readText(directory + "/merged");
}

TEST(MergeLines, AgreesWithGitOnRandomEdits) {
  if (std::system("git --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  const sys::fixtures::TempDir directory;
  std::mt19937 random(7);
  int clean = 0, conflicts = 0;
  for (int round = 0; round < 120; ++round) {
    // Lines that differ from each other: what a change is called then has one answer.
    std::vector<std::string> base;
    for (unsigned line = 0; line < random() % 12; ++line) base.push_back("line " + std::to_string(line) + "\n");
    const std::string ours = joined(changed(base, random, "ours ")), theirs = joined(changed(base, random, "theirs "));
    const auto made = merge(joined(base), ours, theirs);
    const auto expected = mergedByGit(directory.path(), joined(base), ours, theirs);
    ASSERT_EQ(made, expected) << "base:\n" << joined(base) << "ours:\n" << ours << "theirs:\n" << theirs;
    (made ? clean : conflicts) += 1;
  }
  EXPECT_GT(clean, 20);
  EXPECT_GT(conflicts, 20);
}

TEST(MergeLines, KeepsItsInvariantsForTextsWithRepeatedLines) {
  std::mt19937 random(8);
  const auto text = [&] {
    std::string made;
    for (auto lines = random() % 10; lines > 0; --lines)
      made += std::string(1, static_cast<char>('a' + random() % 3)) + "\n";
    return made;
  };
  for (int round = 0; round < 5000; ++round) {
    const std::string base = text(), ours = text(), theirs = text();
    ASSERT_EQ(merge(base, ours, base), ours);
    ASSERT_EQ(merge(base, base, theirs), theirs);
    ASSERT_EQ(merge(base, ours, ours), ours);
    ASSERT_EQ(merge(base, ours, theirs), merge(base, theirs, ours)) << base << "--\n" << ours << "--\n" << theirs;
  }
}

}  // namespace
}  // namespace caisson::session
