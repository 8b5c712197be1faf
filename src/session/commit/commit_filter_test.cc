#include "session/commit/commit_filter.h"

#include <gtest/gtest.h>

namespace caisson::session {

TEST(CommitFilter, HoldsWhatTheHostExecutesLater) {
  for (const char* path : {".git/hooks/pre-commit",
                           ".git/config",
                           "sub/.git/config",
                           ".GIT/config",
                           ".git",
                           ".git/info/attributes",
                           ".git/modules/x/hooks/y",
                           ".vscode/tasks.json",
                           ".bashrc",
                           "home/.zshrc",
                           ".claude/settings.json",
                           ".mcp.json",
                           ".github/workflows/ci.yml",
                           ".GitHub/Workflows/ci.yml",
                           "Jenkinsfile",
                           ".envrc",
                           "pkg/.npmrc",
                           "AGENTS.md",
                           "x.code-workspace",
                           ".husky/pre-push",
                           "deep/er/.idea/x.xml"}) {
    EXPECT_FALSE(whyHeld(path).empty()) << path;
  }
}

TEST(CommitFilter, LetsAProjectsOwnContentPass) {
  for (const char* path : {"src/main.cc", "Makefile", "package.json", ".git/objects/ab/cdef", ".git/refs/heads/main",
                           ".git/HEAD", "github/x", "docs/vscode/tasks.json", "bashrc", ".gitignore", "README.md"}) {
    EXPECT_TRUE(whyHeld(path).empty()) << path;
  }
}

TEST(CommitFilter, KnowsLinksThatLeadOut) {
  EXPECT_TRUE(leadsOut("a", "/etc/passwd"));
  EXPECT_TRUE(leadsOut("a", "../x"));
  EXPECT_TRUE(leadsOut("d/a", "../../x"));
  EXPECT_TRUE(leadsOut("d/a", "x/../../../y"));
  EXPECT_FALSE(leadsOut("a", "b"));
  EXPECT_FALSE(leadsOut("d/a", "../b"));
  EXPECT_FALSE(leadsOut("d/a", "./b/../c"));
}

}  // namespace caisson::session
