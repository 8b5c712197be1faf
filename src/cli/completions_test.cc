#include "cli/completions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace caisson::cli {
namespace {

TEST(Completions, NameEveryOptionOfRun) {
  const Verb* run = findVerb(allVerbs(), "run");
  ASSERT_NE(run, nullptr);
  const std::string bash = bashCompletion(allVerbs());
  const std::string zsh = zshCompletion(allVerbs());
  const std::string fish = fishCompletion(allVerbs());
  for (const OptionGroup& group : run->syntax.groups) {
    for (const Option& option : group.options) {
      const std::string name(option.name);
      EXPECT_NE(bash.find("--" + name), std::string::npos) << name;
      EXPECT_NE(zsh.find("--" + name), std::string::npos) << name;
      EXPECT_NE(fish.find("-l " + name), std::string::npos) << name;
    }
  }
}

TEST(Completions, OfferNoHiddenVerb) {
  for (const std::string& script :
       {bashCompletion(allVerbs()), zshCompletion(allVerbs()), fishCompletion(allVerbs())}) {
    EXPECT_EQ(script.find("__man"), std::string::npos);
  }
}

TEST(Completions, CompleteValuesByTheirName) {
  EXPECT_EQ(completes("none|ro|rw"), Completes::words);
  EXPECT_EQ(completes("DIR[:MODE]"), Completes::directories);
  EXPECT_EQ(completes("FILE..."), Completes::files);
  EXPECT_EQ(completes("PROFILE"), Completes::profiles);
  EXPECT_EQ(completes("HOST:PORT"), Completes::hosts);
  EXPECT_EQ(completes("SIZE"), Completes::nothing);
}

TEST(Completions, AreValidBash) {
  if (std::system("command -v bash >/dev/null 2>&1") != 0) GTEST_SKIP() << "bash is not installed";
  std::FILE* shell = ::popen("bash -n", "w");
  ASSERT_NE(shell, nullptr);
  const std::string script = bashCompletion(allVerbs());
  EXPECT_EQ(std::fwrite(script.data(), 1, script.size(), shell), script.size());
  EXPECT_EQ(::pclose(shell), 0);
}

}  // namespace
}  // namespace caisson::cli
