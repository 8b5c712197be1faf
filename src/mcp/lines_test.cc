#include "mcp/lines.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace caisson::mcp {
namespace {

std::vector<std::pair<std::string, bool>> split(std::string_view bytes, std::size_t piece, std::size_t limit) {
  LineSplitter lines(limit);
  std::vector<std::pair<std::string, bool>> found;
  while (!bytes.empty()) {
    lines.add(bytes.substr(0, piece), [&](std::string_view line, bool whole) { found.emplace_back(line, whole); });
    bytes.remove_prefix(std::min(piece, bytes.size()));
    EXPECT_LE(lines.held(), limit + 64);
  }
  return found;
}

TEST(McpLines, AreIndependentOfReadSizes) {
  const std::string text = "one\n\ntwo\r\n" + std::string(20, 'x') + "\nthree\nrest";
  const std::vector<std::pair<std::string, bool>> expected{
      {"one", true}, {"two", true}, {std::string(20, 'x'), true}, {"three", true}};
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 100U}) EXPECT_EQ(split(text, piece, 100), expected) << piece;
}

TEST(McpLines, OverlongLineIsReportedOnceAndNotBuffered) {
  const std::string text = "a\n" + std::string(100000, 'x') + "\nb\n";
  for (const std::size_t piece : {1U, 1000U, 200000U}) {
    const auto found = split(text, piece, 1000);
    ASSERT_EQ(found.size(), 3U) << piece;
    EXPECT_FALSE(found[1].second);
    EXPECT_LE(found[1].first.size(), 64U);
    EXPECT_EQ(found[2], (std::pair<std::string, bool>{"b", true}));
  }
}

}  // namespace
}  // namespace caisson::mcp
