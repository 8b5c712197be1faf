// How a program in the sandbox can change files that the host would execute.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "functional/sandbox.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

class WritableWorkspace : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    const RunOutput output =
        runProgram({"sh", "-c",
                    "cd '" + workspace.path() +
                        "' && git init -q -b main . && echo x > f && git add f && "
                        "git -c user.name=a -c user.email=a@b commit -q -m first && "
                        "mkdir -p .vscode .github/workflows sub && echo '{}' > .vscode/tasks.json && "
                        "echo on: push > .github/workflows/ci.yml && echo true > sub/.envrc && chmod -R a+rwX ."});
    ASSERT_EQ(output.exit_status, 0) << output.describe();
  }
  RunOutput attempt(const std::string& text, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all{"--workspace", ".:rw"};
    all.insert(all.end(), flags.begin(), flags.end());
    return script(text, all);
  }
  [[nodiscard]] bool has(const std::string& path) const {
    return std::filesystem::exists(std::filesystem::symlink_status(workspace / path));
  }
};

TEST_F(WritableWorkspace, FilesThatTheHostWouldExecuteAreReadOnly) {
  CONFORMS("R-FILES-23");
  for (const char* text :
       {"echo evil > .git/hooks/pre-commit", "echo evil >> .git/config", "rm -rf .git/hooks", "mv .git/hooks .git/h",
        "echo evil > .vscode/tasks.json", "echo evil > .vscode/launch.json", "echo evil > .github/workflows/new.yml",
        "echo evil > sub/.envrc", "rm sub/.envrc", "ln -f f sub/.envrc", "mv f sub/.envrc"}) {
    const RunOutput output = attempt(text);
    EXPECT_NE(output.exit_status, 0) << text << output.describe();
  }
  EXPECT_FALSE(has(".git/hooks/pre-commit"));
  EXPECT_FALSE(has(".vscode/launch.json"));
  EXPECT_FALSE(has(".github/workflows/new.yml"));
  EXPECT_EQ(readFile(workspace / "sub/.envrc"), "true\n");
  EXPECT_EQ(readFile(workspace / ".git/config").find("evil"), std::string::npos);
}

TEST_F(WritableWorkspace, RenamingADirectoryAboveThemFails) {
  CONFORMS("R-FILES-23");
  for (const char* text : {"mv .git old", "mv sub elsewhere", "mv .vscode old", "mv .github old"}) {
    EXPECT_NE(attempt(text).exit_status, 0) << text;
  }
  EXPECT_TRUE(has(".git/HEAD"));
  EXPECT_TRUE(has("sub/.envrc"));
}

TEST_F(WritableWorkspace, ShapeOfARepositoryLiftsNoProtection) {
  for (const char* name : {"HEAD", "commondir"}) workspace.write(name, "");
  workspace.write("sub/.git/HEAD", "ref: refs/heads/main\n");
  for (const char* name : {"objects/x", "refs/x", "hooks/x"}) workspace.write(std::string("sub/.git/") + name, "");
  for (const char* path : {".vscode/tasks.json", "sub/.envrc", "sub/.git/hooks/pre-commit"}) {
    EXPECT_NE(attempt("echo evil > " + std::string(path)).exit_status, 0) << path;
    EXPECT_TRUE(!has(path) || readFile(workspace / path).find("evil") == std::string::npos) << path;
  }
  attempt("mkdir new; echo evil > new/.bashrc; echo evil > .bashrc; mkdir -p x/.GIT/y; echo evil > x/.GIT/y/.envrc");
  for (const char* path : {"new/.bashrc", ".bashrc", "x/.GIT/y/.envrc"}) EXPECT_FALSE(has(path)) << path;
}

/// What is pinned in a protected directory, or has a rule, opens no other part of it.
TEST_F(WritableWorkspace, ProtectedDirectoryStaysSoWhateverIsMountedInIt) {
  workspace.write(".git/HEAD", "ref: refs/heads/main\n");
  for (const char* name : {".git/objects/x", ".git/refs/x", ".git/hooks/pre-push.sample", ".vscode/n/k", ".vscode/e"})
    workspace.write(name, "ok\n");
  for (const char* name : {".vscode/n/.env", "sub/.vscode/.env"}) workspace.write(name, "K=canary\n");
  for (const char* name : {".vscode/tasks.json", "sub/.vscode/tasks.json"}) workspace.write(name, "ok\n");
  std::filesystem::create_symlink(".git/hooks/pre-push.sample", workspace / "CLAUDE.md");
  std::filesystem::create_symlink(".vscode/e", workspace / ".envrc");
  workspace.makeDir("sub/more");
  std::filesystem::create_symlink("../.vscode/tasks.json", workspace / "sub/more/.envrc");
  using Flags = std::vector<std::string>;
  for (const Flags& flags :
       {Flags{"--workspace", ".:rw"}, Flags{"--workspace", ".:rw", "--deny", ".vscode/n/k"},
        Flags{"--workspace", ".:rw", "--ro", ".vscode/n"}, Flags{"--workspace", ".:rw", "--rw", ".vscode/n"},
        Flags{"--workspace", ".:rw", "--ro", "sub/.vscode/tasks.json"}, Flags{"--rw", "sub"},
        Flags{"--rw", "sub", "--deny", "sub/.vscode/tasks.json"}, Flags{"--rw", ".", "--ro", ".vscode/n"}}) {
    const RunOutput output = script(
        "for d in .git/hooks .vscode sub/.vscode; do echo evil > $d/post-checkout; echo evil >> $d/tasks.json; "
        "mv $d $d.moved; done 2> /dev/null; echo ok > .vscode/n/new",
        flags);
    const RunOutput evil = runProgram({"grep", "-rl", "evil", workspace.path()});
    EXPECT_EQ(evil.out, "") << testing::PrintToString(flags) << output.describe();
    EXPECT_FALSE(has(".vscode/n/new")) << testing::PrintToString(flags) << output.describe();
  }
}

TEST_F(WritableWorkspace, RuleInAProtectedDirectoryHoldsThere) {
  for (const char* name : {".vscode/n/k", ".vscode/n/m/k"}) workspace.write(name, "ok\n");
  const RunOutput output =
      script("for d in .vscode .vscode/n .vscode/n/m; do echo new > $d/new; done 2> /dev/null",
             {"--workspace", ".:rw", "--ro", ".vscode", "--rw", ".vscode/n", "--ro", ".vscode/n/m"});
  EXPECT_FALSE(has(".vscode/new"));
  EXPECT_TRUE(has(".vscode/n/new")) << output.describe();
  EXPECT_FALSE(has(".vscode/n/m/new"));
}

/// The kernel removes a mount with the name that it is on.
TEST_F(WritableWorkspace, FilesThatTheHostReplacesMeanwhileAreReported) {
  workspace.write("other/.envrc", "true\n");
  const RunOutput output = onHost(
      "(until test -e started; do sleep 0.02; done; git config branch.main.remote origin; "
      "rm -r .github; mkdir -p .github/workflows; echo true > other/.envrc; touch go) & "
      "\"$CAISSON\" run --workspace .:rw -- sh -c 'touch started; until test -e go; do sleep 0.02; done; "
      "echo \"[core] fsmonitor = evil\" >> .git/config'; wait");
  EXPECT_TRUE(contains(output.err, "replaced on the host while the program ran")) << output.describe();
  EXPECT_TRUE(contains(output.err, ".git/config, .github; ")) << output.describe();
}

/// A directory that the search passes over would be a place where a program keeps what the next one reads.
TEST_F(WritableWorkspace, MovedDirectoriesHideNoSecretFromTheNextSearch) {
  workspace.write("sub/conf/.env", "canary\n");
  std::filesystem::remove(workspace / "sub/.envrc");
  attempt(
      "mkdir -p x/.GIT x/.git/objects; touch x/HEAD x/commondir; mv sub/conf x/.GIT/ || mv sub x/.GIT/; "
      "mv sub x/.git/objects/aa; true");
  const RunOutput output = attempt("find . -type f -exec cat {} + 2>/dev/null; true");
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.out;
}

TEST_F(WritableWorkspace, DeniedPathStaysDeniedForLaterRuns) {
  workspace.write("sub/deep/private.txt", "canary\n");
  runProgram({"chmod", "-R", "a+rwX", workspace / "sub"});
  const TempDir other;
  other.write("in/private.txt", "canary\n");
  runProgram({"chmod", "-R", "a+rwX", other.path()});
  const std::vector<std::string> flags{"--deny", "sub/deep/private.txt",  "--rw", other.path(),
                                       "--deny", other / "in/private.txt"};
  for (const char* move : {"mv sub sub2; mkdir -p sub/deep; echo x > sub/deep/private.txt",
                           "mv sub/deep sub/d2; mkdir sub/deep; echo x > sub/deep/private.txt",
                           "mv sub .git/; mv sub .vscode/", "ln sub/deep/private.txt x", "rm -rf sub"}) {
    attempt(std::string(move) + "; cd " + other.path() + " && mv in out && mkdir in && echo x > in/private.txt; true",
            flags);
    const RunOutput output = attempt("find . " + other.path() + " -type f -exec cat {} + 2>/dev/null; true", flags);
    EXPECT_EQ(output.out.find("canary"), std::string::npos) << move << output.describe();
  }
  EXPECT_EQ(readFile(workspace / "sub/deep/private.txt"), "canary\n");
  EXPECT_EQ(readFile(other / "in/private.txt"), "canary\n");
}

TEST_F(WritableWorkspace, DeniedPathThroughALinkOfAWritableTreeIsRefused) {
  const TempDir other;
  other.write("real/private.txt", "canary\n");
  ASSERT_EQ(::symlink("real", (other / "link").c_str()), 0);
  const RunOutput output = attempt("true", {"--rw", other.path(), "--deny", other / "link/private.txt"});
  EXPECT_NE(output.exit_status, 0);
  EXPECT_NE(output.err.find("symbolic link"), std::string::npos) << output.describe();
}

/// What is hidden only because a link or a configuration leads to it.
TEST_F(WritableWorkspace, PlacesOfHiddenFilesCannotBeMoved) {
  workspace.write("conf/local.txt", "canary\n");
  ASSERT_EQ(::symlink("conf/local.txt", (workspace / ".env").c_str()), 0);
  workspace.write("inc/team", "[url \"https://me:canary@example.org\"]\n");
  ASSERT_EQ(runProgram({"git", "-C", workspace.path(), "config", "include.path", "../inc/team"}).exit_status, 0);
  runProgram({"chmod", "-R", "a+rwX", workspace.path()});
  attempt("mv conf c2; mv inc i2; mv .env x; rm -f .env; true");
  const RunOutput output = attempt("find . -type f -exec cat {} + 2>/dev/null; true");
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.describe();
}

TEST_F(WritableWorkspace, OrdinaryWorkIsPossible) {
  const RunOutput output = attempt(
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
      "echo y > g && git add g && git commit -q -m second && git checkout -q -b topic && git log --oneline | wc -l && "
      "mkdir new && mv g new/ && echo z > sub/file");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "2\n");
  EXPECT_EQ(readFile(workspace / "sub/file"), "z\n");
}

TEST_F(WritableWorkspace, CommitsWorkInSubmodulesAndWorktreesAreProtected) {
  const RunOutput made = onHost(
      "set -e; git config --global --add safe.directory '*' 2>/dev/null || true; "
      "git init -q -b main other; cd other; echo o > o; git add o; git -c user.name=a -c user.email=a@b commit -q -m "
      "o; cd ..; "
      "git -c protocol.file.allow=always submodule --quiet add ./other lib; git worktree add -q -b side tree; chmod -R "
      "a+rwX .",
      {.env = {{"HOME", workspace.path()}}});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const RunOutput output = attempt(
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; "
      "cd lib; echo 1 > n; git add n; git commit -q -m in-lib; git log --oneline | wc -l");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "2\n");
  // Its .git file has a path of the host.
  const RunOutput tree = attempt("cat tree/.git; echo evil > .git/worktrees/tree/gitdir");
  EXPECT_NE(tree.exit_status, 0) << tree.describe();
}

TEST_F(WritableWorkspace, NewFilesThatTheHostWouldExecuteAreMovedOut) {
  CONFORMS("R-FILES-23");
  const RunOutput output = attempt(
      "echo evil > .envrc; mkdir -p a/.husky; echo evil > a/.husky/pre-push; "
      "git init -q --bare repo; echo fine > notes.md");
  EXPECT_FALSE(has(".envrc")) << output.describe();
  EXPECT_FALSE(has("a/.husky")) << output.describe();
  EXPECT_FALSE(has("repo/config")) << output.describe();
  EXPECT_FALSE(has("repo/hooks")) << output.describe();
  EXPECT_EQ(readFile(workspace / "notes.md"), "fine\n");
  EXPECT_TRUE(has("sub/.envrc")) << "it existed before";
  EXPECT_NE(output.err.find(".envrc"), std::string::npos) << output.err;
  EXPECT_NE(output.err.find("moved to"), std::string::npos) << output.err;
}

TEST_F(WritableWorkspace, LinksToProtectedFilesLeadToReadOnlyFiles) {
  CONFORMS("R-FILES-23");
  const RunOutput made = onHost(
      "set -e; mkdir -p tools/zed tools/hooks tools/named cfg/fish dot; echo a > AGENTS.md; ln -s AGENTS.md CLAUDE.md; "
      "ln -s tools/zed .zed; rm -rf .git/hooks; ln -s ../tools/hooks .git/hooks; ln -s dot/zshrc .zshrc; ln -s cfg "
      ".config; "
      "git config core.hooksPath tools/named; chmod -R a+rwX .");
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  for (const char* path : {"AGENTS.md", "CLAUDE.md", "tools/zed/tasks.json", ".zed/tasks.json",
                           "tools/hooks/pre-commit", "tools/named/pre-push", "cfg/fish/config.fish"}) {
    const RunOutput output = attempt(std::string("echo evil >> ") + path);
    EXPECT_NE(output.exit_status, 0) << path << ": " << output.describe();
    EXPECT_NE(output.err.find("Read-only file system"), std::string::npos) << path << ": " << output.describe();
  }
  const RunOutput output =
      attempt("echo evil > dot/zshrc; rm CLAUDE.md; echo evil > CLAUDE.md; echo fine > tools/fine");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_FALSE(has("dot/zshrc")) << "its name is .zshrc";
  EXPECT_FALSE(has("CLAUDE.md")) << "it replaced a link";
  EXPECT_TRUE(has("tools/fine"));
}

TEST_F(WritableWorkspace, NewLinksAndClosedDirectoriesHideNothingThatTheHostWouldExecute) {
  CONFORMS("R-FILES-23");
  ASSERT_EQ(onHost("rm -rf .git/hooks").exit_status, 0);
  const RunOutput output = attempt(
      "mkdir -p plain/fish; echo x > plain/fish/config.fish; ln -s plain .config; ln -s plain .idea; "
      "mkdir -p n/.claude; echo evil > n/.claude/settings.json; chmod 311 n; git init -q m; chmod 311 m/.git; "
      "mkdir .zed; echo evil > .zed/tasks.json; chmod 0 .zed; mkdir -p deep/er; echo evil > deep/er/.envrc; "
      "chmod 0 deep/er deep; mkdir .git/hooks; echo evil > .git/hooks/pre-commit; chmod 555 .git/hooks; "
      "mkdir ro; echo evil > ro/.bashrc; chmod 555 ro; rm -f .git/COMMIT_EDITMSG; ln -s config .git/COMMIT_EDITMSG; "
      "mkdir -p .git/rebase-merge; echo 'exec id' > .git/rebase-merge/git-rebase-todo; mkdir -p .git/objects/info; "
      "echo /x > .git/objects/info/alternates; ln -s ../../config .git/refs/heads/x; "
      "mkdir -p .git/logs/objects/ab; ln -s ../../../config .git/logs/objects/ab/y");
  for (const char* moved : {".config", ".idea", "n/.claude", "m/.git/config", ".zed", "deep/er/.envrc", ".git/hooks",
                            "ro/.bashrc", ".git/COMMIT_EDITMSG", ".git/rebase-merge", ".git/objects/info/alternates",
                            ".git/refs/heads/x", ".git/logs/objects/ab/y"}) {
    EXPECT_FALSE(has(moved)) << moved << ": " << output.describe();
  }
  EXPECT_TRUE(has("plain/fish/config.fish")) << "only the link gave it that name";
}

TEST_F(WritableWorkspace, NewLinkWithAProtectedNameThroughAnotherLinkIsMovedOut) {
  ASSERT_EQ(onHost("mkdir cfg src; echo mine > src/file; ln -s cfg .config; chmod -R a+rwX .").exit_status, 0);
  const RunOutput output = attempt("ln -s ../src cfg/fish; echo fine > src/other");
  EXPECT_FALSE(has("cfg/fish")) << output.describe();
  EXPECT_TRUE(has("src/file")) << "the link is moved, not what it leads to";
}

TEST_F(WritableWorkspace, DirectoryThatCannotBeSearchedIsNeitherShownNorTouched) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  ASSERT_EQ(onHost("mkdir closed; echo mine > closed/.envrc; echo secret > closed/.env; chmod 0 closed").exit_status,
            0);
  const RunOutput output = attempt("chmod 700 closed; cat closed/.env; mv closed away; echo x > new; echo x > .bashrc");
  EXPECT_NE(output.err.find("could not be searched for secrets: closed (no permission to read it)"), std::string::npos)
      << output.describe();
  EXPECT_EQ(output.out.find("secret"), std::string::npos) << output.out;
  EXPECT_TRUE(has("new"));
  EXPECT_FALSE(has(".bashrc")) << "new files are still moved away";
  EXPECT_EQ(onHost("stat -c %a closed").out, "0\n");
  ASSERT_EQ(onHost("chmod 700 closed").exit_status, 0);
  EXPECT_TRUE(has("closed/.envrc")) << "a file of the owner's is not new";
}

/// The host can follow a link in a directory that cannot be listed.
TEST_F(WritableWorkspace, LinksInADirectoryThatCannotBeListedAreFollowed) {
  workspace.write("c/d/file", "ordinary\n");
  workspace.write("notes.md", "mine\n");
  workspace.write("more/rules.md", "mine\n");
  for (const auto& [target, link] : {std::pair{"d", "c/l"},
                                     {"c/l", "CLAUDE.md"},
                                     {"../notes.md", "c/n"},
                                     {"c/n", "AGENTS.md"},
                                     {"../more", "c/m"},
                                     {"c/m/rules.md", "GEMINI.md"}}) {
    ASSERT_EQ(symlink(target, (workspace / link).c_str()), 0);
  }
  ASSERT_EQ(chmod((workspace / "c").c_str(), 0111), 0);
  const RunOutput output =
      script("echo evil > notes.md || echo no; echo evil > more/rules.md || echo no; mv more other || echo no",
             {"--workspace", ".:rw"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "no\nno\nno\n") << output.describe();
  ASSERT_EQ(chmod((workspace / "c").c_str(), 0755), 0);
  EXPECT_EQ(readFile(workspace / "notes.md"), "mine\n");
  EXPECT_TRUE(std::filesystem::is_symlink(workspace / "c/l")) << "it was there before" << output.describe();
}

TEST_F(WritableWorkspace, ProtectedFilesWithOtherNamesAreReported) {
  CONFORMS("R-FILES-23");
  EXPECT_EQ(attempt("true").err.find("hard links"), std::string::npos);
  const RunOutput made = onHost(
      "set -e; mkdir -p scripts/.idea/deep; echo x > scripts/pre-commit; ln scripts/pre-commit .git/hooks/pre-commit; "
      "ln sub/.envrc sub/same; echo x > AGENT-TEXT; ln AGENT-TEXT text; ln -s AGENT-TEXT CLAUDE.md; "
      "echo x > scripts/.idea/deep/a; ln scripts/.idea/deep/a a; chmod -R a+rwX .");
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const RunOutput output = attempt("true");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  const std::size_t at = output.err.find("have other names (hard links)");
  ASSERT_NE(at, std::string::npos) << output.err;
  for (const char* path : {".git/hooks/pre-commit", "sub/.envrc", "AGENT-TEXT", "scripts/.idea/deep/a"}) {
    EXPECT_NE(output.err.find(path, at), std::string::npos) << path << ": " << output.err;
  }
  EXPECT_EQ(attempt("true", {"--allow-exec-config"}).err.find("hard links"), std::string::npos);
}

TEST_F(WritableWorkspace, DecoyLinksHideNoNewFile) {
  CONFORMS("R-FILES-23");
  for (const char* decoy :
       {"ln -s local/tasks .idea", "mkdir .a; ln -s $(seq -f ../none/n%g.code-workspace 1 4200) .a/"}) {
    ASSERT_EQ(onHost("rm -rf .zed local .a; ln -s local/tasks .zed").exit_status, 0);
    const RunOutput output = attempt(std::string("mkdir -p local/tasks; echo evil > local/tasks/tasks.json; ") + decoy);
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_FALSE(has("local/tasks/tasks.json")) << decoy << ": " << output.describe();
    EXPECT_TRUE(has(".zed")) << "it existed before";
    EXPECT_FALSE(has(".idea"));
    EXPECT_FALSE(has(".a/n1.code-workspace"));
  }
}

/// CAISSON_HOME is unusable here, as if it were on another file system.
TEST_F(WritableWorkspace, QuarantineInTheWorkspaceCannotBeBlocked) {
  CONFORMS("R-FILES-23");
  const TempDir home;
  home.openToAll().write("state/quarantined-files", "in the way");
  const RunOptions how{.env = {{"CAISSON_HOME", home / "state"}}};
  for (const char* block :
       {"true", ": > .caisson-quarantine", "ln -s /nowhere .caisson-quarantine", "mkdir q; ln -s q .caisson-quarantine",
        "mkdir -m 0 .caisson-quarantine", "mkdir .caisson-quarantine; chmod 555 ."}) {
    ASSERT_EQ(onHost("chmod -R u+rwX . && rm -rf .caisson-* .envrc q").exit_status, 0);
    const RunOutput output = script(std::string("echo evil > .envrc; ") + block, {"--workspace", ".:rw"}, how);
    EXPECT_FALSE(has(".envrc")) << block << output.describe();
    EXPECT_NE(output.err.find("denied: create: .envrc"), std::string::npos) << output.err;
    EXPECT_NE(output.err.find("moved to " + workspace / ".caisson-"), std::string::npos) << output.err;
    EXPECT_EQ(onHost("find q -type f 2>/dev/null").out, "") << "moved through a link of the payload's";
  }
}

class OverlappingRuns : public SandboxTest {
 protected:
  /// Runs `first` with these flags; beside it, `second`. Each is a script.
  [[nodiscard]] RunOutput both(const std::string& first_flags, const std::string& first,
                               const std::string& second_flags, const std::string& second) {
    return onHost("export CAISSON_HOME=" + scratch_.path() + "/state; T=" + scratch_.path() +
                  "; rm -f $T/words; mkfifo $T/words; $CAISSON run " + first_flags + " -- sh -c '" + first +
                  "; echo started; read done' < $T/words > $T/out 2> $T/err & exec 3> $T/words; "
                  "until grep -q started $T/out 2> /dev/null; do sleep 0.01; done; $CAISSON run " +
                  second_flags + " -- sh -c '" + second + "' > /dev/null 2>&1; exec 3>&-; wait");
  }
  const TempDir scratch_;
};

TEST_F(OverlappingRuns, FileThatOnlyOneFindsProtectedStaysProtectedAndStays) {
  workspace.write("policy.toml", "[filesystem.workspace]\nprotected_files = ['deploy/*.sh']\n");
  workspace.write("deploy/x.sh", "old\n");
  workspace.write("sub/gradle.properties", "old\n");
  ASSERT_EQ(::symlink("sub", (workspace / ".gradle").c_str()), 0);
  workspace.openToAll();
  const std::string all = "--workspace .:rw", patterns = all + " --policy policy.toml", part = "--workspace sub:rw";
  const std::string evil = "echo evil > deploy/x.sh", linked = "echo evil > sub/gradle.properties";
  (void)both(all, "true", patterns, evil);
  EXPECT_EQ(readFile(workspace / "deploy/x.sh"), "old\n") << "the second run has the pattern";
  (void)both(patterns, evil, all, "true");
  EXPECT_EQ(readFile(workspace / "deploy/x.sh"), "old\n") << "the first run has the pattern";
  (void)both(part, "true", all, linked);
  EXPECT_EQ(readFile(workspace / "sub/gradle.properties"), "old\n") << "the second run has the link";
  (void)both(all, linked, part, "true");
  EXPECT_EQ(readFile(workspace / "sub/gradle.properties"), "old\n") << "the first run has the link";
}

TEST_F(OverlappingRuns, FileThatOneMadeIsMovedAwayAndCannotBeMadeAgainByTheOther) {
  workspace.write("policy.toml", "[filesystem.workspace]\nprotected_files = ['deploy/*.sh']\n");
  workspace.write("deploy/readme", "text\n");
  ASSERT_EQ(::symlink("deploy", (workspace / ".vscode").c_str()), 0);
  workspace.openToAll();
  const std::string all = "--workspace .:rw", patterns = all + " --policy policy.toml";
  (void)both(patterns, "echo evil > deploy/x.sh", all, "mv deploy/x.sh deploy/y; mv deploy/y deploy/x.sh");
  EXPECT_FALSE(std::filesystem::exists(workspace / "deploy/x.sh"));
  (void)both(all, "echo evil > deploy/tasks.json", patterns, "rm deploy/tasks.json; echo evil > deploy/tasks.json");
  EXPECT_FALSE(std::filesystem::exists(workspace / "deploy/tasks.json"));
}

TEST_F(WritableWorkspace, AllowExecConfigLiftsTheProtection) {
  CONFORMS("R-FILES-23");
  const TempDir home;
  const RunOptions how{.env = {{"CAISSON_HOME", home / "state"}}};
  const RunOutput output = script("echo mine > .git/hooks/pre-commit && echo mine > .envrc",
                                  {"--workspace", ".:rw", "--allow-exec-config", "--json"}, how);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(has(".git/hooks/pre-commit"));
  EXPECT_TRUE(has(".envrc"));
  EXPECT_NE(output.json()["warnings"].dump().find("--allow-exec-config"), std::string::npos) << output.describe();
  const RunOutput log = runCaisson({"audit", "show"}, how);
  EXPECT_NE(log.out.find("with files that the host would execute"), std::string::npos) << log.describe();
}

}  // namespace
}  // namespace caisson::test
