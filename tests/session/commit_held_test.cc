// What the host would execute is held back: git directories by shape, names, what a policy adds, what a model commits.
#include "functional/commit.h"

namespace caisson::test {
namespace {

class CommitHeld : public CommitTest {
 protected:
  Session createIn(const std::string& directory) {
    std::filesystem::create_directories(workspace / directory);
    workspace.openToAll();
    SessionOptions in = options();
    EXPECT_TRUE(in.policy.set("filesystem.workspace.path", workspace / directory));
    auto made = store->create(in);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
};

TEST_F(CommitHeld, BareRepositoryIsRecognisedAndHeld) {
  const TempDir proof;
  Session session = create();
  const std::string attack = "touch " + (proof / "ran");
  output(session,
         "mkdir -p docs/objects docs/refs docs/sub; echo 'ref: refs/heads/main' > docs/HEAD; "
         "printf '[core]\\n\\tbare = false\\n\\tworktree = sub\\n\\tfsmonitor = \"" +
             attack + "; false\"\\n' > docs/config; echo text > docs/readme.md; echo x > docs/sub/x");
  CommitReport report = commit(session);
  for (const char* held : {"docs/HEAD", "docs/config", "docs/objects", "docs/refs"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
    EXPECT_FALSE(exists(workspace / held)) << held;
  }
  EXPECT_EQ(readFile(workspace / "docs/readme.md"), "text\n") << "the rest of the directory is content";
  (void)runProgram({"git", "status"}, {.cwd = workspace / "docs"});
  EXPECT_FALSE(exists(proof / "ran")) << "git ran a program of the session's on the host";
}

/// As if the directory above were the workspace.
TEST_F(CommitHeld, WorkspaceInAProtectedDirectoryIsHeld) {
  ASSERT_EQ(runProgram({"git", "init", "-q", "--bare", workspace / "mirror"}).exit_status, 0);
  for (const char* directory : {".claude", ".vscode", ".github/workflows", ".cargo", ".zed", ".config/nvim",
                                ".git/hooks", "mirror/hooks", ".claude/worktrees/w/.vscode"}) {
    Session session = createIn(directory);
    output(session, "echo x > settings.json; mkdir sub; echo x > sub/init.txt");
    CommitRequest request{.dry_run = true};
    CommitReport report = commit(session, request);
    EXPECT_EQ(applied(report), "") << directory;
    request.paths = {"settings.json"};
    request.ordinary_files_only = true;
    report = commit(session, request);
    ASSERT_EQ(report.applied.size(), 1U) << directory;
    EXPECT_TRUE(report.applied[0].held_unless_named) << directory;
    EXPECT_NE(report.applied[0].held_reason, "") << directory;
  }
}

TEST_F(CommitHeld, WorkTreeInTheDirectoryOfAnAgentIsOrdinary) {
  Session session = createIn(".claude/worktrees/w");
  output(session, "echo x > main.c; echo x > CLAUDE.md");
  EXPECT_EQ(applied(commit(session)), "main.c\n");
}

TEST_F(CommitHeld, RepositoryIsHeldWhenItsPartsComeOneByOne) {
  Session session = create();
  output(session, "mkdir d; echo '[core]' > d/config");
  EXPECT_EQ(applied(commit(session)), "d\nd/config\n") << "a file of this name is nothing special";
  output(session, "mkdir d/objects d/refs; echo 'ref: refs/heads/m' > d/HEAD");
  CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "") << "together they make a repository";
  output(session, "rm -r d/objects d/refs; echo ../x > d/commondir");
  report = commit(session);
  EXPECT_EQ(applied(report), "");
}

TEST_F(CommitHeld, DataOfARepositoryOfTheHostPasses) {
  ASSERT_EQ(runProgram({"git", "init", "-q", "--bare", workspace / "mirror"}).exit_status, 0);
  Session session = create();
  output(session,
         "echo x > mirror/refs/heads/x; mkdir -p mirror/objects/ab; echo o > mirror/objects/ab/c; "
         "echo x >> mirror/config; echo x > mirror/hooks/post-update");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "mirror/objects/ab\nmirror/objects/ab/c\nmirror/refs/heads/x\n");
  EXPECT_EQ(paths(report.held), "mirror/config\nmirror/hooks/post-update\n");
}

TEST_F(CommitHeld, RepositoryOfTheHostWithoutItsHeadIsStillHeld) {
  ASSERT_EQ(runProgram({"git", "init", "-q", "--bare", workspace / "mirror"}).exit_status, 0);
  ASSERT_EQ(::rename((workspace / "mirror/HEAD").c_str(), (workspace / "mirror/moved").c_str()), 0);
  workspace.openToAll();
  Session session = create();
  output(session,
         "echo x > mirror/hooks/pre-commit; echo x > mirror/hooks/post-update; echo '[core]' >> mirror/config");
  const CommitReport report = commit(session);
  for (const char* held : {"mirror/hooks/pre-commit", "mirror/hooks/post-update", "mirror/config"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
  }
}

TEST_F(CommitHeld, NewerNamesAreHeld) {
  Session session = create();
  output(session,
         "mkdir -p .jj .sl .helix; for f in .jj/config.toml .sl/config .helix/languages.toml .dir-locals-2.el "
         "lefthook.yaml mise.local.toml .overcommit.yml CLAUDE.local.md x.desktop x.service; do echo x > $f; done; "
         "echo ok > ok");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "ok\n") << applied(report);
}

/// The host's file system may not tell them apart.
TEST_F(CommitHeld, NamesInAnotherCaseAreHeldToo) {
  workspace.write("envrc", "x\n");
  Session session = create();
  output(session,
         "mkdir -p .VSCode bare/OBJECTS bare/Refs; echo x > .VSCode/Tasks.json; mv envrc .ENVRC; "
         "echo 'ref: refs/heads/m' > bare/Head; echo '[core]' > bare/CONFIG; echo x > bare/OBJECTS/x; echo ok > ok");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "bare\nenvrc\nok\n");
}

TEST_F(CommitHeld, PolicyAddsProtectedFiles) {
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.append("filesystem.workspace.protected_files", "deploy/"));
  ASSERT_TRUE(wanted.policy.append("filesystem.workspace.protected_files", "*.secret.sh"));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "mkdir deploy; echo x > deploy/x; echo x > a.secret.sh; echo x > b.sh");
  EXPECT_EQ(applied(commit(*session)), "b.sh\n");
  SessionOptions bad = options();
  EXPECT_FALSE(bad.policy.set("filesystem.workspace.protected_files", "/etc/passwd"));
}

TEST_F(CommitHeld, ModelsCommitOnlyOrdinaryFiles) {
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.committable_files", "*.dat"));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  output(*session,
         "mkdir src .new; echo x > src/a.py; echo x > .newtool.toml; echo x > .new/a.py; echo x > program; "
         "echo x > a.dat; echo x > \"$(printf 'a\\342\\200\\256gnp.py')\"");
  const CommitReport report = commit(*session, {.ordinary_files_only = true});
  EXPECT_EQ(applied(report), "a.dat\nsrc\nsrc/a.py\n");
  EXPECT_EQ(report.held.size(), 5U) << paths(report.held);
  const CommitReport named = commit(*session, {.paths = {"program"}, .ordinary_files_only = true});
  ASSERT_EQ(applied(named), "program\n");
  EXPECT_TRUE(named.applied[0].held_unless_named);
}

TEST_F(CommitHeld, FilesThatHooksCallAreHeld) {
  ASSERT_EQ(runProgram({"git", "init", "-q", workspace.path()}).exit_status, 0);
  workspace.write(".git/hooks/pre-commit", "#!/bin/sh\n./scripts/check.sh && sh lint\n", 0755);
  workspace.write(".vscode/tasks.json", R"({"tasks": [{"command": "${workspaceFolder}/tools/run", "args": ["x/y"]}]})");
  workspace.write("scripts/check.sh", "exit 0\n", 0755);
  workspace.write("x/y", "x\n");
  workspace.openToAll();
  Session session = create();
  output(session,
         "echo evil >> scripts/check.sh; echo x > lint; mkdir tools; echo x > tools/run; echo x >> x/y; echo x > a.c");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "a.c\ntools\nx/y\n");
  for (const char* held : {"scripts/check.sh", "lint", "tools/run"}) EXPECT_TRUE(isHeld(report, held)) << held;
  EXPECT_EQ(readFile(workspace / "scripts/check.sh"), "exit 0\n");
  EXPECT_EQ(applied(commit(session, {.paths = {"scripts/check.sh"}})), "scripts/check.sh\n");
}

TEST_F(CommitHeld, IndexThatHidesChangesFromGitStatusIsHeld) {
  const RunOutput made = runProgram(
      {"sh", "-c", "git init -q . && echo x > f && echo x > g && git add . && git update-index --skip-worktree g"},
      {.cwd = workspace.path()});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  workspace.openToAll();
  Session session = create();
  output(session, "echo y > h; git add h");
  EXPECT_FALSE(isHeld(commit(session), ".git/index")) << "it has the host's flag only";
  output(session, "git update-index --assume-unchanged f; echo evil >> f");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "f\n");
  EXPECT_TRUE(isHeld(report, ".git/index")) << paths(report.held);
  const RunOutput status = runProgram({"git", "status", "--short"}, {.cwd = workspace.path()});
  EXPECT_NE(status.out.find("M f"), std::string::npos) << status.describe();
}

}  // namespace
}  // namespace caisson::test
