// Links are judged in the tree that a commit would leave, by where they really lead.
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "functional/commit.h"
#include "session/layers/steps.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class CommitLinks : public CommitTest {};

TEST_F(CommitLinks, LinkThroughALinkIsResolvedInTheResult) {
  Session session = create();
  output(session,
         "mkdir -p s d; ln -s .. s/u; ln -s s/u/../.bashrc todo.md; ln -s missing/../../x bad; ln -s missing/x half; "
         "ln -s loop2 loop; ln -s loop loop2; ln -s /etc/passwd abs; ln -s ../.. d/out; ln -s d/../f turn; "
         "echo f > f; ln -s f good; ln -s ../f d/up; ln -s gone dangling; ln -s d/up through; ln -s d dir; "
         "ln -s dir/up more");
  const CommitReport report = commit(session);
  for (const char* held : {"todo.md", "bad", "half", "loop", "abs", "d/out", "turn"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
    struct stat status{};
    EXPECT_NE(::lstat((workspace / held).c_str(), &status), 0) << held;
  }
  for (const char* passed : {"good", "d/up", "dangling", "through", "dir", "more", "s/u"}) {
    EXPECT_FALSE(isHeld(report, passed)) << passed;
    struct stat status{};
    EXPECT_EQ(::lstat((workspace / passed).c_str(), &status), 0) << passed;
  }
  EXPECT_EQ(readFile(workspace / "more"), "f\n");
}

/// A host program that reads .config/fish/ would read what the link leads to.
TEST_F(CommitLinks, LinkInPlaceOfADirectoryWithProtectedNamesIsHeld) {
  Session session = create();
  output(session,
         "mkdir -p cfg/fish sp lib; echo x > cfg/fish/config.fish; echo x > sp/x.pth; ln -s cfg .config; "
         "ln -s ../sp lib/site-packages; ln -s cfg harmless; mkdir .github; ln -s .github dist");
  const CommitReport report = commit(session);
  for (const char* held : {".config", "lib/site-packages", "dist"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
    struct stat status{};
    EXPECT_NE(::lstat((workspace / held).c_str(), &status), 0) << held;
  }
  EXPECT_FALSE(isHeld(report, "harmless"));
  EXPECT_EQ(applied(commit(session, {.paths = {".config"}})), ".config\n");
  output(session, "echo y > cfg/fish/config.fish; echo y > cfg/plain");
  const CommitReport later = commit(session);
  EXPECT_EQ(applied(later), "cfg/plain\n");
  EXPECT_TRUE(isHeld(later, "cfg/fish/config.fish")) << "the link is in the workspace now";
}

TEST_F(CommitLinks, FileWithAProtectedNameThroughALinkOfTheHostIsHeld) {
  workspace.write(".git/HEAD", "ref: refs/heads/main\n");
  workspace.write(".git/config", "[core]\n\thooksPath = tools/named\n");
  workspace.makeDir(".git/objects");
  workspace.makeDir(".git/refs");
  for (const char* directory : {"tools/hooks", "tools/named", "tools/vscode", "dot"}) workspace.makeDir(directory);
  workspace.write("ci/build.yml", "old\n");
  workspace.makeDir(".github/workflows");
  for (const auto& [target, link] : {std::pair("../tools/hooks", ".git/hooks"),
                                     {"tools/vscode", ".vscode"},
                                     {"dot/bashrc", ".bashrc"},
                                     {"../../ci/build.yml", ".github/workflows/build.yml"}}) {
    ASSERT_EQ(::symlink(target, (workspace / link).c_str()), 0) << link;
  }
  Session session = create();
  output(session,
         "echo x > .git/hooks/pre-commit; echo x > tools/vscode/tasks.json; echo x > dot/bashrc; "
         "echo x > tools/named/pre-push; echo x > ci/build.yml; echo x > ci/other; rm -r tools/vscode; echo x > fine");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "ci/other\nfine\n");
  for (const char* held :
       {"tools/hooks/pre-commit", "tools/vscode", "dot/bashrc", "tools/named/pre-push", "ci/build.yml"}) {
    EXPECT_TRUE(isHeld(report, held)) << held << " of " << paths(report.held);
  }
  EXPECT_EQ(readFile(workspace / "ci/build.yml"), "old\n");
  EXPECT_EQ(applied(commit(session, {.paths = {"dot/bashrc"}})), "dot/bashrc\n") << "a person may name it";
}

/// CLAUDE.md leads through CURRENT.md: whatever takes its place is read as CLAUDE.md.
TEST_F(CommitLinks, WhatReplacesALinkOnTheWayToAProtectedFileIsHeld) {
  for (const char* file : {"docs/v1.md", "envs/dev", "configs/dev/vscode/x", "cfg/a"}) workspace.write(file, "old\n");
  for (const auto& [target, link] : {std::pair("CURRENT.md", "CLAUDE.md"),
                                     {"docs/v1.md", "CURRENT.md"},
                                     {"env.current", ".envrc"},
                                     {"envs/dev", "env.current"},
                                     {"config/vscode", ".vscode"},
                                     {"configs/dev", "config"},
                                     {"now/idea", ".idea"},
                                     {"cfg", "now"}}) {
    ASSERT_EQ(::symlink(target, (workspace / link).c_str()), 0) << link;
  }
  Session session = create();
  output(session,
         "echo evil > docs/v2.md; ln -sfn docs/v2.md CURRENT.md; rm env.current; echo evil > env.current; rm config; "
         "mkdir -p config/vscode; echo evil > config/vscode/tasks.json; rm now; echo evil > docs/v1.md");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "docs/v2.md\n");
  for (const char* held : {"CURRENT.md", "env.current", "config", "now", "docs/v1.md"}) {
    EXPECT_TRUE(isHeld(report, held)) << held << " of " << paths(report.held);
  }
  EXPECT_EQ(readFile(workspace / "CLAUDE.md"), "old\n");
  EXPECT_EQ(readFile(workspace / ".envrc"), "old\n");
  // Named by a person, the link changes, and what it leads to then is protected as well.
  output(session, "echo evil > docs/v2.md; echo more >> docs/v2.md");
  const CommitReport named = commit(session, {.paths = {"CURRENT.md", "docs"}});
  EXPECT_EQ(applied(named), "CURRENT.md\n") << paths(named.held);
}

/// Links outside of the workspace count as the host follows them, and so does `..` behind a link.
TEST_F(CommitLinks, FileThatALinkOutsideLeadsToIsHeld) {
  const TempDir outside;
  const std::string real = std::filesystem::canonical(workspace.path()).string();
  ASSERT_EQ(::symlink(real.c_str(), (outside / "alias").c_str()), 0);
  workspace.write(".git/HEAD", "ref: refs/heads/main\n");
  workspace.write(".git/config", "[core]\n\thooksPath = " + outside / "alias/hooks" +
                                     "\n[alias]\n\tx = !lnk/../run.sh\n"
                                     "\ty = !sh script\n");
  for (const char* directory : {".git/objects", ".git/refs", "tools", "a/b", "hooks", "script.d"})
    workspace.makeDir(directory);
  ASSERT_EQ(::symlink((outside / "alias/tools").c_str(), (workspace / ".vscode").c_str()), 0);
  ASSERT_EQ(::symlink("a/b", (workspace / "lnk").c_str()), 0);
  Session session = create();
  output(session,
         "echo x > hooks/pre-commit; echo x > tools/tasks.json; echo x > a/run.sh; echo x > script; echo x > run.sh");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "run.sh\n");
  for (const char* held : {"hooks/pre-commit", "tools/tasks.json", "a/run.sh", "script"}) {
    EXPECT_TRUE(isHeld(report, held)) << held << " of " << paths(report.held);
  }
  output(session, "rm -r a/b; ln -s ../evil a/b; rm script; mkdir script; echo x > script/x");
  const CommitReport later = commit(session);
  EXPECT_EQ(applied(later), "script\nscript/x\n") << "a directory is not a script";
  EXPECT_TRUE(isHeld(later, "a/b")) << "lnk/.. would be another directory";
}

/// core.hooksPath is relative to the work tree, which is not always the directory above the git directory.
TEST_F(CommitLinks, ProgramsOfGitAreHeldInEveryWorkTree) {
  const TempDir outside;
  const auto host = [&](const std::string& script) {
    const RunOutput done = runProgram({"sh", "-c",
                                       "set -e; cd '" + workspace.path() + "'; export GIT_CONFIG_NOSYSTEM=1; main='" +
                                           outside / "main" + "'; " + script});
    ASSERT_EQ(done.exit_status, 0) << done.describe();
  };
  host(
      "c() { git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x; }; "
      "git init -q $main; (cd $main; git config core.hooksPath tools/hooks; c; git worktree add -q "
      "\"$OLDPWD/linked\"); "
      "git init -q own; (cd own; git config core.hooksPath tools/hooks; c; git worktree add -q tree); "
      "git init -q --separate-git-dir=store apart; git -C apart config core.hooksPath tools/hooks; "
      "git init -q set; mv set/.git set/data; git --git-dir=set/data config core.worktree ..; "
      "git --git-dir=set/data config core.hooksPath tools/hooks; "
      "mkdir -p linked/tools/hooks own/tools/hooks own/tree/tools/hooks apart/tools/hooks set/tools/hooks");
  Session session = create();
  output(
      session,
      "for tree in linked own own/tree apart set; do echo x > $tree/tools/hooks/pre-commit; echo x > $tree/fine; done");
  const CommitReport report = commit(session);
  for (const char* tree : {"linked", "own", "own/tree", "apart", "set"}) {
    const std::string path = std::string(tree) + "/tools/hooks/pre-commit";
    EXPECT_TRUE(isHeld(report, path)) << path << " of " << paths(report.held);
    EXPECT_TRUE(exists(workspace / (std::string(tree) + "/fine"))) << tree;
  }
}

TEST_F(CommitLinks, SearchThatIsNotCompleteIsReportedAndHoldsAModelsCommitBack) {
  workspace.makeDir("closed");
  ASSERT_EQ(::chmod((workspace / "closed").c_str(), 0), 0);
  Session session = create();
  output(session, "echo x > a.py");
  const CommitReport whole = commit(session, {.dry_run = true, .ordinary_files_only = true});
  EXPECT_EQ(applied(whole), "a.py\n") << "no link in a directory that is closed to the user matters";
  EXPECT_TRUE(whole.searched);
  if (::geteuid() != 0) {  // root reads every directory
    ASSERT_EQ(::chmod((workspace / "closed").c_str(), 0100), 0);
    EXPECT_EQ(applied(commit(session, {.dry_run = true, .ordinary_files_only = true})), "") << "it may hide links";
    ASSERT_EQ(::chmod((workspace / "closed").c_str(), 0), 0);
  }
  workspace.write(".git/HEAD", "ref: refs/heads/main\n");
  workspace.write(".git/config", std::string(2 << 20, '#'));
  const CommitReport part = commit(session, {.dry_run = true});
  EXPECT_EQ(applied(part), "a.py\n");
  EXPECT_FALSE(part.searched);
  const CommitReport model = commit(session, {.dry_run = true, .ordinary_files_only = true});
  EXPECT_EQ(applied(model), "") << "a configuration that was not read may name it";
  EXPECT_EQ(::chmod((workspace / "closed").c_str(), 0700), 0);
}

/// Git writes the message of a commit through the link.
TEST_F(CommitLinks, LinkInAGitDirectoryIsHeld) {
  for (const char* repository : {".git", "mirror"}) {
    workspace.write(std::string(repository) + "/HEAD", "ref: refs/heads/main\n");
    workspace.write(std::string(repository) + "/config", "[core]\n");
    workspace.makeDir(std::string(repository) + "/objects");
    workspace.makeDir(std::string(repository) + "/refs");
  }
  Session session = create();
  output(session,
         "ln -s config .git/COMMIT_EDITMSG; mkdir -p .git/logs; ln -s ../config .git/logs/HEAD; mkdir alt; "
         "ln -s ../../alt .git/objects/info; ln -s config mirror/index; echo x > .git/refs/x");
  const CommitReport report = commit(session);
  for (const char* held : {".git/COMMIT_EDITMSG", ".git/logs/HEAD", ".git/objects/info", "mirror/index"}) {
    EXPECT_TRUE(isHeld(report, held)) << held << " of " << paths(report.held);
  }
  EXPECT_FALSE(isHeld(report, ".git/refs/x"));
}

TEST_F(CommitLinks, WhatAHeldDirectoryContainsIsHeldForThatReason) {
  Session session = create();
  output(session,
         "mkdir -p nested/.git/objects nested/.git/refs; echo x > nested/.git/HEAD; echo x > nested/.git/config");
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.conflicts.empty()) << paths(report.conflicts);
  EXPECT_TRUE(isHeld(report, "nested/.git/HEAD"));
}

TEST_F(CommitLinks, LinkThroughALinkOfTheHostIsHeld) {
  const TempDir elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (workspace / "away").c_str()), 0);
  Session session = create();
  output(session, "ln -s away/file through; ln -s away whole");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.held), "through\nwhole\n");
}

TEST_F(CommitLinks, LinkIsJudgedByWhatIsCommittedNotByTheSession) {
  Session session = create();
  output(session, "mkdir d; ln -s .. d/up; ln -s d/up/x chosen; echo x > x");
  const CommitReport report = commit(session, {.paths = {"x", "d"}});
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(applied(commit(session)), "chosen\n") << "its way is there now";
}

TEST_F(CommitLinks, DirectoryThatTheHostMadeALinkIsNotWrittenThrough) {
  workspace.write(".git/hooks/sample", "real\n");
  workspace.write("docs/hooks/sample", "old\n");
  Session session = create();
  output(session, "echo evil > docs/hooks/sample; echo evil > docs/hooks/pre-commit");
  ASSERT_EQ(::rename((workspace / "docs").c_str(), (workspace / "moved").c_str()), 0);
  ASSERT_EQ(::symlink(".git", (workspace / "docs").c_str()), 0);
  const CommitReport report = commit(session, {.paths = {"docs/hooks/sample", "docs/hooks/pre-commit"}});
  EXPECT_EQ(applied(report), "");
  EXPECT_NE(paths(report.conflicts).find("docs/hooks/pre-commit\ndocs/hooks/sample\n"), std::string::npos)
      << paths(report.conflicts);
  EXPECT_EQ(readFile(workspace / ".git/hooks/sample"), "real\n");
  EXPECT_FALSE(exists(workspace / ".git/hooks/pre-commit"));
}

/// What the session's layer looks like once the links were judged and before they are written.
std::function<void()> change_the_layer;

TEST_F(CommitLinks, CheckedTargetIsTheCommittedTarget) {
  CONFORMS("R-FILES-13");
  Session session = create();
  output(session, "echo x > file; ln -s safe inward; ln -s ../../../../etc outward");
  change_the_layer = [&] {
    const RunOutput found = runProgram({"find", home_path + "/stores", "-name", "inward"});
    const std::string inward = found.out.substr(0, found.out.find('\n'));
    ASSERT_FALSE(inward.empty()) << found.describe();
    const std::string outward = inward.substr(0, inward.rfind('/')) + "/outward";
    ASSERT_EQ(::renameat2(AT_FDCWD, inward.c_str(), AT_FDCWD, outward.c_str(), RENAME_EXCHANGE), 0);
  };
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "commit: one staged" && change_the_layer) std::exchange(change_the_layer, {})();
  };
  const CommitReport report = commit(session);
  session::step_observer = nullptr;
  EXPECT_FALSE(change_the_layer) << "the step is not there";
  EXPECT_EQ(paths(report.held), "outward\n");
  char target[64] = {};
  ASSERT_GT(::readlink((workspace / "inward").c_str(), target, sizeof(target) - 1), 0);
  EXPECT_STREQ(target, "safe");
}

TEST_F(CommitLinks, ExchangedLinkIsNeverCommitted) {
  CONFORMS("R-FILES-13");
  const TempDir outside;
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "printf 'good\\n' > f; ln -s ../../../../etc l; ln -s safe inward; ln -s ../../../../etc outward");
  auto started = session.start({.command = {"python3", "-c",
                                            "import ctypes\n"
                                            "c = ctypes.CDLL(None)\n"
                                            "while True:\n"
                                            "  c.renameat2(-100, b'f', -100, b'l', 2)\n"
                                            "  c.renameat2(-100, b'inward', -100, b'outward', 2)\n"}});
  ASSERT_TRUE(started) << started.error().message();
  for (int round = 0; round < 60; ++round) {
    const auto report = session.commit();
    ASSERT_TRUE(report) << report.error().message();
    for (const char* name : {"f", "l"}) {
      struct stat status{};
      if (::lstat((workspace / name).c_str(), &status) != 0) continue;
      ASSERT_TRUE(S_ISREG(status.st_mode)) << "an outward link arrived as " << name << " in round " << round;
      const std::string text = readFile(workspace / name);
      ASSERT_TRUE(text == "good\n" || text == "old\n") << text;
    }
    for (const char* name : {"inward", "outward"}) {
      char target[64] = {};
      if (::readlink((workspace / name).c_str(), target, sizeof(target) - 1) < 0) continue;
      ASSERT_STREQ(target, "safe") << "what was judged is not what arrived as " << name << " in round " << round;
      ASSERT_EQ(::unlink((workspace / name).c_str()), 0);
    }
  }
  const auto stopped = session.stop(*started, 0);
  EXPECT_TRUE(stopped) << stopped.error().message();
}

}  // namespace
}  // namespace caisson::test
