// A workspace, or a tree of --rw, that is a directory below the one that gives its files their meaning.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr const char* kKey = "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary-key\n";

class Enclosing : public SandboxTest {
 protected:
  /// A repository, as git makes one.
  void repository(const std::string& place, const std::string& config = "[core]\n") const {
    const std::string git = place.empty() ? ".git" : place + "/.git";
    workspace.write(git + "/HEAD", "ref: refs/heads/main\n");
    workspace.write(git + "/config", config);
    workspace.makeDir(git + "/objects");
    workspace.makeDir(git + "/refs");
  }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(workspace / name).parent_path());
    ASSERT_EQ(::symlink(target.c_str(), (workspace / name).c_str()), 0) << name;
  }
  void hardLink(const std::string& file, const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(workspace / name).parent_path());
    ASSERT_EQ(::link((workspace / file).c_str(), (workspace / name).c_str()), 0) << name;
  }
  /// Runs a script with this directory of the workspace as its workspace.
  [[nodiscard]] RunOutput scriptIn(const std::string& directory, const std::string& mode,
                                   const std::string& text) const {
    return script(text, {"--workspace", workspace / directory + ":" + mode});
  }
  void expectHidden(const std::string& directory) const {
    for (const char* mode : {"overlay", "ro", "rw"}) {
      const RunOutput output = scriptIn(directory, mode, "find . -type f -exec cat {} + 2>/dev/null; true");
      EXPECT_FALSE(contains(output.out, "canary")) << directory << " " << mode << output.describe();
      EXPECT_TRUE(contains(output.out, "visible")) << directory << " " << mode << output.describe();
    }
  }
};

TEST_F(Enclosing, HooksOfTheRepositoryAroundAreRefusedOrProtected) {
  CONFORMS("R-FILES-10");
  repository("", "[core]\n\thooksPath = hp\n");
  workspace.makeDir("hp/sub");
  workspace.makeDir("src");
  const std::string plant = "echo x > pre-commit";
  for (const RunOutput& refused : {scriptIn("hp", "rw", plant), scriptIn("hp/sub", "rw", plant),
                                   script("echo x > hp/pre-commit", {"--rw", "hp"})}) {
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "files the host would execute")) << refused.describe();
  }
  EXPECT_FALSE(std::filesystem::exists(workspace / "hp/pre-commit"));
  EXPECT_FALSE(std::filesystem::exists(workspace / "hp/sub/pre-commit"));
  EXPECT_EQ(scriptIn("src", "rw", "echo x > main.c").exit_status, 0) << "a directory like any other";
}

TEST_F(Enclosing, HooksOfTheOuterRepositoryAreProtectedInAnInnerOne) {
  repository("", "[core]\n\thooksPath = tools/hr/hooks\n[alias]\n\tx = !cd tools && ./hr/run.sh\n");
  repository("tools/hr");
  workspace.makeDir("tools/hr/hooks");
  const RunOutput output = scriptIn("tools/hr", "rw", "echo x > hooks/pre-commit; echo x > run.sh; echo x > ordinary");
  EXPECT_FALSE(std::filesystem::exists(workspace / "tools/hr/hooks/pre-commit")) << output.describe();
  EXPECT_FALSE(std::filesystem::exists(workspace / "tools/hr/run.sh")) << output.describe();
  EXPECT_EQ(readFile(workspace / "tools/hr/ordinary"), "x\n") << output.describe();
}

TEST_F(Enclosing, HooksAtTheTopOfTheWorkTreeAreQuarantined) {
  repository("", "[core]\n\thooksPath = .\n");
  workspace.makeDir("src");
  const RunOutput output = scriptIn("", "rw", "echo x > pre-commit; echo x > src/pre-commit");
  EXPECT_FALSE(std::filesystem::exists(workspace / "pre-commit")) << output.describe();
  EXPECT_TRUE(std::filesystem::exists(workspace / "src/pre-commit")) << output.describe();
}

TEST_F(Enclosing, HooksOfTheUserAreProtectedOutsideOfRepositories) {
  const TempDir user;
  user.write(".gitconfig", "[core]\n\thooksPath = " + workspace / "hp" + "\n");
  user.openToAll();
  workspace.makeDir("hp");
  const RunOutput refused =
      script("echo x > pre-commit", {"--workspace", workspace / "hp:rw"}, {.env = {{"HOME", user.path()}}});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_FALSE(std::filesystem::exists(workspace / "hp/pre-commit"));
}

TEST_F(Enclosing, TargetsOfLinksOfTheRepositoryAroundAreProtected) {
  CONFORMS("R-FILES-10");
  repository("");
  workspace.write("tools/vscode/settings.json", "old\n");
  workspace.write("docs/v1.md", "old\n");
  workspace.write("scripts/pc.sh", "old\n");
  link("tools/vscode", ".vscode");
  link("docs/v1.md", "CLAUDE.md");
  link("../../scripts/pc.sh", ".git/hooks/pre-commit");
  const RunOutput tools = scriptIn("tools", "rw", "echo x > vscode/settings.json; echo x > vscode/tasks.json");
  EXPECT_EQ(readFile(workspace / "tools/vscode/settings.json"), "old\n") << tools.describe();
  EXPECT_FALSE(std::filesystem::exists(workspace / "tools/vscode/tasks.json")) << tools.describe();
  EXPECT_EQ(scriptIn("tools/vscode", "rw", "echo x > tasks.json").exit_status, 125);
  const RunOutput docs = scriptIn("docs", "rw", "echo x > v1.md; echo x > v2.md");
  EXPECT_EQ(readFile(workspace / "docs/v1.md"), "old\n") << docs.describe();
  EXPECT_EQ(readFile(workspace / "docs/v2.md"), "x\n") << docs.describe();
  const RunOutput scripts = scriptIn("scripts", "rw", "echo x > pc.sh");
  EXPECT_EQ(readFile(workspace / "scripts/pc.sh"), "old\n") << scripts.describe();
  const RunOutput named = script("echo x > docs/v1.md", {"--rw", "docs"});
  EXPECT_EQ(readFile(workspace / "docs/v1.md"), "old\n") << named.describe();
}

TEST_F(Enclosing, NewTargetsOfLinksOfTheRepositoryAroundAreQuarantined) {
  repository("");
  workspace.makeDir("tools");
  link("tools/vscode", ".vscode");
  const RunOutput output = scriptIn("tools", "rw",
                                    "mkdir vscode; echo x > vscode/tasks.json; "
                                    "echo 'gitdir: /a/worktrees/b' > .git; echo x > ordinary");
  EXPECT_FALSE(std::filesystem::exists(workspace / "tools/vscode/tasks.json")) << output.describe();
  EXPECT_TRUE(std::filesystem::exists(workspace / "tools/ordinary")) << output.describe();
  EXPECT_TRUE(contains(output.err, "quarantined-files")) << output.describe();
}

TEST_F(Enclosing, SecretsOfTheRepositoryAroundAreHidden) {
  CONFORMS("R-FILES-25");
  repository("", "[include]\n\tpath = ../inc/shared\n");
  workspace.write("conf/local.txt", "canary-1\n");
  workspace.write("real/x", kKey);
  workspace.write(".env.prod", "canary-2\n");
  workspace.write("inc/shared", "[http]\n\textraHeader = canary-3\n");
  link("conf/local.txt", ".env.local");
  link("../real/x", "w/id_rsa");
  hardLink(".env.prod", "data/copy.bin");
  for (const char* directory : {"conf", "real", "data", "inc"}) {
    workspace.write(std::string(directory) + "/code", "visible\n");
    expectHidden(directory);
  }
  const RunOutput shown = script("cat local.txt", {"--workspace", workspace / "conf", "--show-file", "local.txt"});
  EXPECT_EQ(shown.out, "canary-1\n") << shown.describe();
}

/// A tree of --ro or --rw in the workspace's directory.
TEST_F(Enclosing, SecretsOfTheRepositoryAroundAreHiddenInNamedTrees) {
  repository("");
  workspace.write("conf/local.txt", "canary\n");
  workspace.makeDir("src");
  link("conf/local.txt", ".env.local");
  for (const char* how : {"--ro", "--rw"}) {
    const RunOutput output =
        script("cat " + workspace / "conf/local.txt", {"--workspace", workspace / "src", how, workspace / "conf"});
    EXPECT_FALSE(contains(output.out, "canary")) << how << output.describe();
  }
}

TEST_F(Enclosing, HardLinksOfFilesInHiddenDirectoriesAreHidden) {
  CONFORMS("R-FILES-25");
  workspace.write(".ssh/id_x", kKey);
  workspace.write(".env.d/deep/prod", "canary\n");
  workspace.write(".gnupg/private-keys-v1.d/key", "canary\n");
  repository("sub", "[http]\n\textraHeader = canary\n[core]\n\tbare = false\n");
  hardLink(".ssh/id_x", "a/l1.bin");
  hardLink(".env.d/deep/prod", "a/l2.bin");
  hardLink(".gnupg/private-keys-v1.d/key", "a/b/l3.bin");
  hardLink("sub/.git/config", "a/l4.bin");
  workspace.write("a/code", "visible\n");
  expectHidden("");
  const RunOutput redacted = script("cat a/l4.bin", {"--workspace", "."});
  EXPECT_TRUE(contains(redacted.out, "bare = false")) << redacted.describe();
  repository("");
  expectHidden("a");
}

TEST_F(Enclosing, DirectoryAroundThatCannotBeSearchedIsNamed) {
  requireOrSkip(::geteuid() != 0, "root may read everything");
  repository("");
  workspace.makeDir("src");
  workspace.makeDir("other");
  ASSERT_EQ(::chmod((workspace / "other").c_str(), 0100), 0);
  const RunOutput output = scriptIn("src", "rw", "echo ran");
  ASSERT_EQ(::chmod((workspace / "other").c_str(), 0755), 0);
  EXPECT_EQ(output.out, "ran\n") << output.describe();
  EXPECT_TRUE(contains(output.err, "not searched completely for links")) << output.describe();
  EXPECT_TRUE(contains(output.err, workspace / "other")) << output.describe();
}

TEST_F(Enclosing, NothingIsAddedOutsideOfRepositories) {
  workspace.write("conf/local.txt", "shown\n");
  link("conf/local.txt", ".env.local");
  EXPECT_EQ(scriptIn("conf", "overlay", "cat local.txt").out, "shown\n");
  repository("");
  const RunOutput home =
      script("cat local.txt", {"--workspace", workspace / "conf"}, {.env = {{"HOME", workspace.path()}}});
  EXPECT_EQ(home.out, "shown\n") << "a home is not a project" << home.describe();
}

}  // namespace
}  // namespace caisson::test
