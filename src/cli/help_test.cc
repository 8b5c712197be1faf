#include "cli/help.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace caisson::cli {
namespace {

std::vector<const Verb*> everyVerb() {
  std::vector<const Verb*> verbs;
  for (const Verb* verb : allVerbs()) {
    verbs.push_back(verb);
    verbs.insert(verbs.end(), verb->verbs.begin(), verb->verbs.end());
  }
  return verbs;
}

void expectFits(const std::string& text) {
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; start = end + 1, end = text.find('\n', start)) {
    EXPECT_LE(end - start, kHelpWidth) << text.substr(start, end - start);
    EXPECT_TRUE(end == start || text[end - 1] != ' ') << "trailing space: " << text.substr(start, end - start);
  }
  EXPECT_EQ(start, text.size()) << "the last line has no end";
}

TEST(Help, FitsATerminalOfAHundredColumns) {
  expectFits(renderOverview(allVerbs(), false));
  for (const Verb* verb : everyVerb()) expectFits(renderHelp(*verb, false));
}

TEST(Help, ListsEveryVerbThatIsNotHiddenAndNoOther) {
  const std::string text = renderOverview(allVerbs(), false);
  for (const Verb* verb : everyVerb()) {
    const bool shown = text.find("\n  " + std::string(verb->path) + "  ") != std::string::npos;
    EXPECT_EQ(shown, verb->topic != Topic::hidden && verb->verbs.empty()) << verb->path;
  }
}

TEST(Help, OfSessionsOmitsUnsupportedOptions) {
  for (const Verb* verb : everyVerb()) {
    const bool session = verb->path == "session create" || verb->path == "mcp" || verb->path == "agent run" ||
                         verb->path == "agent exec" || verb->path == "agent hook" || verb->path == "agent install";
    const std::string text = renderHelp(*verb, false);
    EXPECT_TRUE(verb->path != "run" || text.find("--net none|proxy|host") != std::string::npos);
    if (!session) continue;
    EXPECT_NE(text.find("--net none|proxy "), std::string::npos) << verb->path;
    EXPECT_EQ(text.find("--runtime caisson"), std::string::npos) << verb->path;
    EXPECT_EQ(text.find("none|process|full"), std::string::npos) << verb->path;
    EXPECT_EQ(text.find("dropped at the end"), std::string::npos) << verb->path;
  }
}

TEST(Help, ColoursOnlyWhenAsked) {
  EXPECT_EQ(renderOverview(allVerbs(), false).find('\033'), std::string::npos);
  EXPECT_NE(renderOverview(allVerbs(), true).find('\033'), std::string::npos);
}

TEST(Verbs, HaveASummaryAFunctionAndDistinctOptionNames) {
  for (const Verb* verb : everyVerb()) {
    EXPECT_FALSE(verb->summary.empty()) << verb->path;
    EXPECT_EQ(verb->perform == nullptr, !verb->verbs.empty()) << verb->path;
    std::set<std::string_view> names{kHelp.name};
    std::set<char> letters{kHelp.letter};
    for (const OptionGroup& group : verb->syntax.groups) {
      for (const Option& option : group.options) {
        EXPECT_TRUE(names.insert(option.name).second) << verb->path << " --" << option.name;
        EXPECT_TRUE(option.letter == 0 || letters.insert(option.letter).second) << verb->path << " -" << option.letter;
        EXPECT_FALSE(option.help.empty()) << option.name;
      }
    }
  }
}

}  // namespace
}  // namespace caisson::cli
