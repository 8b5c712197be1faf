#include "cli/learn/merge.h"

#include <gtest/gtest.h>

#include "policy/decode/decode.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kLearned =
    "# Proposed by `caisson run --learn`. Read it.\nformat_version = 1\nextends = \"bash\"\nname = \"learned\"\n";

Proposal lessons(std::vector<Lesson> lessons) { return {.lessons = std::move(lessons)}; }

bool textHas(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(MergeLessons, RecognisesItsOwnFiles) {
  EXPECT_TRUE(isLearnedPolicy(kLearned));
  EXPECT_FALSE(isLearnedPolicy("format_version = 1\n"));
  EXPECT_EQ(*baseOfPolicy("p.toml", kLearned), "bash");
  EXPECT_EQ(*baseOfPolicy("p.toml", "resources.cpus = 1"), "bash");
}

TEST(MergeLessons, KeepsEarlierLessonsAndComments) {
  const std::string text = std::string(kLearned) +
                           "# my own words\nfilesystem.read_only = [\n  \"/a\", # the first\n]\n"
                           "resources.memory = \"1G\"\n[environment.set]\nCI = \"1\"\n";
  const auto merged = mergeLessons("p.toml", text,
                                   lessons({{"filesystem.read_only", "[\"/b\"]", "asked for"},
                                            {"resources.memory", "536870912", "the limit was met"},
                                            {"process.max_processes", "200", "the limit was met"}}),
                                   false);
  ASSERT_TRUE(merged) << merged.error().message();
  const auto policy = policy::parse(merged->text, policy::Format::toml, "p.toml");
  ASSERT_TRUE(policy) << policy.error().message() << merged->text;
  EXPECT_EQ(policy->filesystem.read_only, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(policy->resources.memory, policy::kGiB) << "the larger limit stays";
  EXPECT_EQ(policy->process.max_processes, 200U);
  EXPECT_EQ(policy->environment.set.at("CI"), "1");
  EXPECT_TRUE(textHas(merged->text, "# my own words\n"));
  ASSERT_EQ(merged->diff.size(), 3U);
  EXPECT_TRUE(merged->diff[0].starts_with("- filesystem.read_only = [")) << merged->diff[0];
  EXPECT_EQ(merged->diff[1], "+ filesystem.read_only = [\"/a\", \"/b\"]    # asked for");
  EXPECT_EQ(merged->diff[2], "+ process.max_processes = 200    # the limit was met");
}

TEST(MergeLessons, ChangesKeysWhereTheFileHasThem) {
  const std::string text =
      "extends = \"bash\"\n\n[filesystem]  # files\nread_only = [\"/a\"]\nworkspace.mode = \"ro\"\n\n"
      "[network]\nmode = \"none\"\n";
  const auto merged = mergeLessons("p.toml", text,
                                   lessons({{"filesystem.read_only", "[\"/a\", \"/b\"]", "asked for"},
                                            {"filesystem.workspace.mode", "\"overlay\"", "tried to write"},
                                            {"filesystem.read_write", "[\"/c\"]", "tried to write"},
                                            {"network.mode", "\"proxy\"", "hosts"}}),
                                   true);
  ASSERT_TRUE(merged) << merged.error().message();
  EXPECT_EQ(merged->text,
            "extends = \"bash\"\n\n[filesystem]  # files\n# tried to write\nread_write = [\"/c\"]\n"
            "read_only = [\"/a\", \"/b\"]\nworkspace.mode = \"overlay\"\n\n[network]\nmode = \"proxy\"\n");
}

TEST(MergeLessons, AddKeysBesideListsOfTables) {
  const std::string text = "[[filesystem.tmpfs]]\npath = \"/tmp\"\nsize = \"8M\"\n";
  const auto merged = mergeLessons("p.toml", text,
                                   lessons({{"filesystem.read_only", "[\"/a\"]", "asked for"},
                                            {"filesystem.read_write", "[\"/b\"]", "tried to write"}}),
                                   true);
  ASSERT_TRUE(merged) << merged.error().message();
  const auto policy = policy::parse(merged->text, policy::Format::toml, "p.toml");
  ASSERT_TRUE(policy) << policy.error().message() << merged->text;
  EXPECT_EQ(policy->filesystem.read_only, std::vector<std::string>{"/a"});
  EXPECT_EQ(policy->filesystem.read_write, std::vector<std::string>{"/b"});
  EXPECT_EQ(policy->filesystem.tmpfs.size(), 1U);
}

TEST(MergeLessons, WithoutNewLessonsLeaveTheFileAsItIs) {
  const std::string text = std::string(kLearned) + "filesystem.read_only = [\"/a\", \"/b\"]\n";
  const auto merged = mergeLessons("p.toml", text, lessons({{"filesystem.read_only", "[\"/b\"]", "again"}}), false);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->text, text);
  EXPECT_TRUE(merged->diff.empty());
}

TEST(MergeLessons, FilesThatCannotBeChangedInPlaceAreRefused) {
  const auto merged = mergeLessons("p.toml", "filesystem = { read_only = [\"/a\"] }\n",
                                   lessons({{"filesystem.read_only", "[\"/b\"]", "asked for"}}), false);
  ASSERT_FALSE(merged);
  EXPECT_TRUE(textHas(merged.error().reason, "nothing was written"));
}

}  // namespace
}  // namespace caisson::cli
