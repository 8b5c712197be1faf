#include "policy/rules/git_config.h"

#include <gtest/gtest.h>

namespace caisson::policy {
namespace {

using Words = std::vector<std::string>;

TEST(GitConfig, NamesWhatGitExecutes) {
  const auto found = pathsInGitConfig(
      "[core]\n\tbare = false\n\thooksPath = tools/hooks # ours\n\tworktree = ../..\n"
      "[filter \"x\"]\n\tclean = \"python3 ci/clean.py --fast\"\n"
      "[Alias] st = !./scripts/st.sh $1\n\tco = checkout\n"
      "[diff \"word\"]\n\ttextconv = \\\n  bin/convert\n"
      "[include]\n\tpath = ../shared.gitconfig\n[includeIf \"gitdir:x\"]\n\tpath=other\n"
      "[remote \"origin\"]\n\turl = ../x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
  EXPECT_EQ(found.executed, (Words{"tools/hooks", "ci/clean.py", "./scripts/st.sh", "bin/convert"}));
  EXPECT_EQ(found.included, (Words{"../shared.gitconfig", "other"}));
  EXPECT_EQ(found.work_tree, "../..");
}

TEST(GitConfig, AcceptsAnyText) {
  for (const char* text : {"", "[", "]", "[core", "=", "[core]hookspath", "[core]\nhooksPath =\n", "\\", "a\\\n\\\n"}) {
    EXPECT_TRUE(pathsInGitConfig(text).executed.empty()) << text;
  }
  EXPECT_EQ(pathsInGitConfig("[core]\r\nhooksPath=\"a b\"\r\n").executed, Words{"a b"});
}

}  // namespace
}  // namespace caisson::policy
