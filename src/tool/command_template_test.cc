#include "tool/command_template.h"

#include <gtest/gtest.h>

namespace caisson::tool {
namespace {

using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  const auto checked = checkTemplate(words);
  return checked ? "" : checked.error().message();
}

}  // namespace

TEST(CommandTemplate, ValueIsOneArgument) {
  const Words words{"grep", "-n", "--", "{pattern}", "{file}"};
  EXPECT_EQ(parameters(words), (Words{"pattern", "file"}));
  const auto filled = fillTemplate(words, {{"pattern", "a b; $(x) *"}, {"file", "-f"}}, {});
  ASSERT_TRUE(filled) << filled.error().message();
  EXPECT_EQ(*filled, (Words{"grep", "-n", "--", "a b; $(x) *", "-f"}));
}

TEST(CommandTemplate, HasPlaceholdersInsideArgumentsAndForMoreArguments) {
  const Words words{"tool", "--size={w}x{h}", "{{{w}}}", "{...}", "end"};
  ASSERT_EQ(refusal(words), "");
  EXPECT_EQ(*fillTemplate(words, {{"w", "3"}, {"h", "4"}}, Words{"-a", "b"}),
            (Words{"tool", "--size=3x4", "{3}", "-a", "b", "end"}));
  EXPECT_EQ(*fillTemplate(words, {{"w", ""}, {"h", ""}}, {}), (Words{"tool", "--size=x", "{}", "end"}));
}

TEST(CommandTemplate, AValueIsNotAnOption) {
  const Words words{"cat", "{file}"};
  const auto filled = fillTemplate(words, {{"file", "--help"}}, {});
  ASSERT_FALSE(filled);
  EXPECT_NE(filled.error().message().find("option"), std::string::npos);
  EXPECT_TRUE(fillTemplate(words, {{"file", "./--help"}}, {}));
}

TEST(CommandTemplate, AValueNeverBecomesPartOfAProgram) {
  for (const char* shell :
       {"sh", "/bin/bash", "busybox", "python3", "/usr/bin/python3.11", "awk", "env", "find", "flock", "watch"}) {
    EXPECT_NE(refusal({shell, "-c", "ls {directory}"}), "") << shell;
    EXPECT_EQ(refusal({shell, "-c", "ls \"$1\"", "sh", "{directory}"}), "") << shell;
  }
  EXPECT_EQ(refusal({"bash", "-c", "{command}"}), "") << "a declared shell tool";
  EXPECT_NE(refusal({"timeout", "9", "sh", "-c", "ls {directory}"}), "");
  EXPECT_NE(refusal({"/usr/bin/setsid", "/bin/nice", "python3", "-c", "print({value})"}), "");
  EXPECT_EQ(refusal({"timeout", "9", "sh", "-c", "ls \"$1\"", "sh", "{directory}"}), "");
  EXPECT_EQ(refusal({"timeout", "9", "grep", "--include={pattern}", "x"}), "");
}

TEST(CommandTemplate, NonsenseIsRefused) {
  for (const Words& words : std::vector<Words>{{},
                                               {""},
                                               {"{program}"},
                                               {"x", "{"},
                                               {"x", "}"},
                                               {"x", "{a"},
                                               {"x", "{}"},
                                               {"x", "{A}"},
                                               {"x", "{1a}"},
                                               {"x", "{a b}"},
                                               {"x", "{...}", "{...}"},
                                               {"x", "a{...}"},
                                               {"x", "{a}}"},
                                               {"x", std::string("a\0b", 3)},
                                               {"x", std::string(200'000, 'x')},
                                               Words(2000, "x")}) {
    EXPECT_NE(refusal(words), "") << (words.empty() ? "" : words.back());
  }
}

TEST(CommandTemplate, MissingAndUnknownValuesAreRejected) {
  const Words words{"cat", "{file}"};
  EXPECT_FALSE(fillTemplate(words, {}, {}));
  EXPECT_FALSE(fillTemplate(words, {{"file", "a"}, {"other", "b"}}, {}));
  EXPECT_FALSE(fillTemplate(words, {{"file", "a"}}, Words{"more"}));
  EXPECT_FALSE(fillTemplate(words, {{"file", std::string("a\0b", 3)}}, {}));
  EXPECT_FALSE(fillTemplate(words, {{"file", std::string(200'000, 'a')}}, {}));
}

}  // namespace caisson::tool
