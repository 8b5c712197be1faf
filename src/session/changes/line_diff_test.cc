#include "session/changes/line_diff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

namespace caisson::session {
namespace {

using Lines = std::vector<std::string_view>;

/// What the edits make of the old text.
std::string apply(const Lines& before, const Lines& after, const std::vector<LineEdit>& edits) {
  std::string text;
  std::size_t at = 0;
  for (const LineEdit& edit : edits) {
    for (; at < edit.old_begin; ++at) text += before.at(at);
    at += edit.old_count;
    for (std::size_t i = 0; i < edit.new_count; ++i) text += after.at(edit.new_begin + i);
  }
  for (; at < before.size(); ++at) text += before.at(at);
  return text;
}

std::size_t cost(const std::vector<LineEdit>& edits) {
  std::size_t lines = 0;
  for (const LineEdit& edit : edits) lines += edit.old_count + edit.new_count;
  return lines;
}

std::size_t checkedCost(const std::string& before, const std::string& after) {
  DiffBudget budget;
  const Lines a = splitLines(before), b = splitLines(after);
  const auto edits = diffLines(a, b, budget);
  EXPECT_EQ(apply(a, b, edits), after);
  for (std::size_t i = 1; i < edits.size(); ++i) {
    EXPECT_GT(edits[i].old_begin, edits[i - 1].old_begin + edits[i - 1].old_count) << "edits must not touch";
  }
  return cost(edits);
}

/// By the textbook table: lines that are not in a longest common subsequence.
std::size_t leastCost(const Lines& a, const Lines& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      table[i][j] = a[i] == b[j] ? table[i + 1][j + 1] + 1 : std::max(table[i + 1][j], table[i][j + 1]);
    }
  }
  return a.size() + b.size() - 2 * table[0][0];
}

TEST(SplitLines, KeepsEveryByte) {
  EXPECT_EQ(splitLines(""), Lines{});
  EXPECT_EQ(splitLines("a\n\nb"), (Lines{"a\n", "\n", "b"}));
  EXPECT_EQ(splitLines("\n"), Lines{"\n"});
}

TEST(DiffLines, FindsSimpleEdits) {
  EXPECT_EQ(checkedCost("a\nb\nc\n", "a\nb\nc\n"), 0U);
  EXPECT_EQ(checkedCost("", "a\n"), 1U);
  EXPECT_EQ(checkedCost("a\n", ""), 1U);
  EXPECT_EQ(checkedCost("a\nb\nc\n", "a\nx\nc\n"), 2U);
  EXPECT_EQ(checkedCost("a\nb\nc", "a\nb\nc\n"), 2U) << "the missing newline is a difference";
}

TEST(DiffLines, IsMinimalForRandomTexts) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const auto text = [&] {
      std::string made;
      for (auto lines = random() % 24; lines > 0; --lines) {
        made += static_cast<char>('a' + random() % 4);
        made += '\n';
      }
      return made;
    };
    const std::string before = text(), after = text();
    EXPECT_EQ(checkedCost(before, after), leastCost(splitLines(before), splitLines(after))) << before << "--\n"
                                                                                            << after;
    if (HasFailure()) return;
  }
}

TEST(DiffLines, SlidesAnInsertionToTheEndOfARepeatedPart) {
  DiffBudget budget;
  const Lines before = splitLines("f() {\n}\n\nend\n");
  const Lines after = splitLines("f() {\n}\n\ng() {\n}\n\nend\n");
  const auto edits = diffLines(before, after, budget);
  ASSERT_EQ(edits.size(), 1U);
  EXPECT_EQ(edits[0].new_begin, 3U);
  EXPECT_EQ(edits[0].new_count, 3U);
}

TEST(DiffLines, IsCorrectAndQuickForHostileTexts) {
  // Two letters, no long common runs: the worst case of the search.
  std::mt19937 random(2);
  const auto text = [&](std::size_t lines) {
    std::string made;
    for (; lines > 0; --lines) made += (random() & 1) != 0 ? "a\n" : "b\n";
    return made;
  };
  const std::string before = text(1'000'000), after = text(1'000'000);
  const auto began = std::chrono::steady_clock::now();
  checkedCost(before, after);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

TEST(DiffLines, ReplacesTheWholeRegionWithoutABudget) {
  DiffBudget budget{.steps = 0};
  const Lines before = splitLines("same\na\nb\nc\nsame\n"), after = splitLines("same\nb\nc\na\nsame\n");
  const auto edits = diffLines(before, after, budget);
  EXPECT_EQ(apply(before, after, edits), "same\nb\nc\na\nsame\n");
  EXPECT_EQ(cost(edits), 6U);
}

TEST(DiffLines, ChargesTheBudgetOfAllTexts) {
  DiffBudget budget{.steps = 1000};
  const Lines before = splitLines("a\nb\nc\nd\n"), after = splitLines("d\nc\nb\na\n");
  (void)diffLines(before, after, budget);
  EXPECT_LT(budget.steps, 1000U);
}

}  // namespace
}  // namespace caisson::session
