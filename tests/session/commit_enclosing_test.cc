// Commits to a directory below the one that gives its files their meaning.
#include <unistd.h>

#include <filesystem>

#include "functional/commit.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class CommitEnclosing : public CommitTest {
 protected:
  void repository(const std::string& config) const {
    workspace.write(".git/HEAD", "ref: refs/heads/main\n");
    workspace.write(".git/config", config);
    workspace.makeDir(".git/objects");
    workspace.makeDir(".git/refs");
  }
  Session createIn(const std::string& directory) {
    SessionOptions chosen = options();
    EXPECT_TRUE(chosen.policy.set("filesystem.workspace.path", workspace / directory));
    auto made = store->create(chosen);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
};

TEST_F(CommitEnclosing, WhatGitOfTheRepositoryAroundExecutesIsHeld) {
  repository("[core]\n\thooksPath = hp\n[alias]\n\tx = !cd tools && ./run.sh\n");
  workspace.makeDir("hp/sub");
  workspace.makeDir("tools/hr/.git");
  for (const char* directory : {"hp", "hp/sub"}) {
    Session session = createIn(directory);
    output(session, "echo x > pre-commit");
    const CommitReport report = commit(session);
    EXPECT_EQ(applied(report), "") << directory;
    EXPECT_TRUE(isHeld(report, "pre-commit")) << directory;
  }
  Session tools = createIn("tools");
  output(tools, "echo x > run.sh; echo x > other.sh");
  EXPECT_EQ(applied(commit(tools)), "other.sh\n");
  workspace.write(".git/config", "[core]\n\thooksPath = tools/hr/hooks\n");
  Session inner = createIn("tools/hr");
  output(inner, "mkdir hooks; echo x > hooks/pre-commit; echo x > fine");
  EXPECT_EQ(applied(commit(inner)), "fine\n");
}

TEST_F(CommitEnclosing, TargetsOfLinksOfTheRepositoryAroundAreHeld) {
  CONFORMS("R-FILES-10");
  repository("[core]\n");
  for (const char* directory : {"tools/vscode", "docs", ".git/hooks", "scripts"}) workspace.makeDir(directory);
  for (const auto& [target, link] : {std::pair("tools/vscode", ".vscode"),
                                     {"docs/v1.md", "CLAUDE.md"},
                                     {"../../scripts/pc.sh", ".git/hooks/pre-commit"}}) {
    ASSERT_EQ(::symlink(target, (workspace / link).c_str()), 0) << link;
  }
  for (const auto& [directory, file] : {std::pair("tools", "vscode/tasks.json"),
                                        {"tools/vscode", "tasks.json"},
                                        {"docs", "v1.md"},
                                        {"scripts", "pc.sh"}}) {
    Session session = createIn(directory);
    output(session, std::string("mkdir -p vscode; echo x > ") + file + "; echo x > fine; ln -s " + file + " alias");
    const CommitReport report = commit(session);
    EXPECT_TRUE(isHeld(report, file)) << directory;
    EXPECT_TRUE(isHeld(report, "alias")) << directory << ": a link to a protected file";
    EXPECT_TRUE(isHeld(report, "fine") == (std::string(directory) == "tools/vscode")) << directory;
    EXPECT_FALSE(std::filesystem::exists(workspace / directory + "/" + file)) << directory;
  }
}

/// What a model may commit is judged from the nearest repository.
TEST_F(CommitEnclosing, FilesInAHiddenDirectoryOfTheRepositoryAroundAreHeldFromModels) {
  repository("[core]\n");
  for (const char* directory : {".hid", ".storybook/a", ".git/refs", "src"}) {
    workspace.makeDir(directory);
    Session session = createIn(directory);
    output(session, "echo x > x.md");
    const CommitReport report = commit(session, {.ordinary_files_only = true});
    EXPECT_EQ(applied(report), std::string(directory) == "src" ? "x.md\n" : "") << directory;
  }
  // A linked work tree is judged alone.
  workspace.makeDir(".worktrees/one");
  workspace.write(".worktrees/one/.git", "gitdir: ../../.git/worktrees/one\n");
  Session linked = createIn(".worktrees/one");
  output(linked, "echo x > x.md");
  EXPECT_EQ(applied(commit(linked, {.ordinary_files_only = true})), "x.md\n");
}

}  // namespace
}  // namespace caisson::test
