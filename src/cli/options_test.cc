#include "cli/options.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson::cli {
namespace {

constexpr Option kMemory{.name = "memory", .letter = 'm', .value = "SIZE", .help = "Memory."};
constexpr Option kJson{.name = "json", .help = "JSON."};
constexpr Option kRo{.name = "ro", .value = "PATH", .help = "Read-only.", .repeatable = true};
constexpr Option kLevel{.name = "level", .value = "none|process|full", .help = "Level."};
constexpr Option kOptions[] = {kMemory, kJson, kRo, kLevel};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};
constexpr Syntax kSyntax{.groups = kGroups, .command = "-- CMD"};
constexpr Syntax kFiles{.groups = kGroups, .operands = "FILE..."};

// Arguments are views of the parsed strings, so the strings must outlive them.
struct Line {
  std::vector<std::string> words;
  std::vector<char*> pointers;
  explicit Line(std::vector<std::string> text) : words(std::move(text)) {
    for (std::string& word : words) pointers.push_back(word.data());
  }
  [[nodiscard]] Result<Arguments> parsedBy(const Syntax& syntax) const { return parse(syntax, pointers); }
};

Error errorOf(std::vector<std::string> words, const Syntax& syntax = kSyntax) {
  const Line line(std::move(words));
  const auto parsed = line.parsedBy(syntax);
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Error{} : parsed.error();
}

TEST(Options, TakesAValueAsTheNextWordOrAfterAnEqualsSign) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--memory", "1G"}, {"--memory=1G"}, {"-m", "1G"}}) {
    const Line line(words);
    const auto parsed = line.parsedBy(kSyntax);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->value(kMemory), "1G");
    EXPECT_FALSE(parsed->has(kJson));
  }
}

TEST(Options, UnlistedChoicesAreParsedButNotShown) {
  constexpr Option kNet{.name = "net", .value = "none|proxy", .help = "Network.", .unlisted = "host"};
  const Option options[] = {kNet};
  const OptionGroup groups[] = {{"Options", options}};
  const Syntax syntax{.groups = groups, .operands = {}, .command = {}};
  const Line line({"--net", "host"});
  EXPECT_EQ(line.parsedBy(syntax)->value(kNet), "host");
  EXPECT_EQ(errorOf({"--net", "wifi"}, syntax).reason, "expected none|proxy");
  EXPECT_EQ(spelling(kNet), "--net none|proxy");
}

TEST(Options, LeavesEverythingAfterTwoDashesToTheCommand) {
  const Line line({"--json", "--", "ls", "--json", "--", "-h"});
  const auto parsed = line.parsedBy(kSyntax);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_TRUE(parsed->has(kJson));
  EXPECT_FALSE(parsed->help);
  ASSERT_EQ(parsed->command.size(), 4U);
  EXPECT_STREQ(parsed->command[1], "--json");
}

TEST(Options, PassesBytesThatAreNotUtf8Unchanged) {
  const Line line({"--ro", "/x\xff\xfe", "--", "\x80"});
  const auto parsed = line.parsedBy(kSyntax);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->value(kRo), "/x\xff\xfe");
  EXPECT_STREQ(parsed->command[0], "\x80");
}

TEST(Options, SuggestsTheOptionThatWasProbablyMeant) {
  const Error error = errorOf({"--memroy", "1G"});
  EXPECT_EQ(error.stage, Stage::usage);
  EXPECT_EQ(error.object, "--memroy");
  EXPECT_NE(error.reason.find("--memory"), std::string::npos);
  EXPECT_EQ(errorOf({"--qqqqqq=secret"}).object, "--qqqqqq");
  EXPECT_EQ(errorOf({"--qqqqqq"}).reason, "unknown option");
}

TEST(Options, NeverTakesTheNextOptionForAForgottenValue) {
  EXPECT_EQ(errorOf({"--memory"}).object, "--memory");
  EXPECT_NE(errorOf({"--memory", "--json"}).reason.find("needs a value: SIZE"), std::string::npos);
  EXPECT_NE(errorOf({"--memory", "--", "ls"}).reason.find("needs a value"), std::string::npos);
}

TEST(Options, RefusesASingleOptionGivenTwice) {
  EXPECT_NE(errorOf({"--memory=1G", "--memory=2G"}).reason.find("more than once"), std::string::npos);
  EXPECT_NE(errorOf({"--json", "--json"}).reason.find("more than once"), std::string::npos);
  const Line line({"--ro=/a", "--ro=/b"});
  const auto parsed = line.parsedBy(kSyntax);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->given.size(), 2U);
}

TEST(Options, NamesTheExpectedValues) {
  EXPECT_NE(errorOf({"--level", "ful"}).reason.find("none|process|full"), std::string::npos);
  EXPECT_NE(errorOf({"--level="}).reason.find("none|process|full"), std::string::npos);
  EXPECT_EQ(errorOf({"--json=yes"}).reason, "takes no value");
}

TEST(Options, RefusesACommandWithoutTheTwoDashesAndSaysWhereTheyGo) {
  const Error error = errorOf({"ls", "-l"});
  EXPECT_EQ(error.object, "ls");
  EXPECT_NE(error.hint.find("-- ls"), std::string::npos);
}

TEST(Options, TakesOperandsOnlyWhereTheVerbHasThem) {
  const Line line({"a.toml", "--json", "-"});
  const auto parsed = line.parsedBy(kFiles);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->operands, (std::vector<std::string_view>{"a.toml", "-"}));
  EXPECT_EQ(errorOf({"--", "ls"}, kFiles).object, "--");
}

TEST(Options, StopsAtTheHelpOption) {
  for (const char* word : {"-h", "--help"}) {
    const Line line({word, "--bogus"});
    const auto parsed = line.parsedBy(kSyntax);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_TRUE(parsed->help);
  }
}

}  // namespace
}  // namespace caisson::cli
