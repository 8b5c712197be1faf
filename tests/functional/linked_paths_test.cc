// Names of the workspace's files that lead through links of the host: git, editors and shells follow them all.
#include <gtest/gtest.h>

#include <filesystem>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

class LinkedPaths : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    workspace.makeDir("proj");
    fs::create_directory_symlink(workspace.path(), home / "src");
    home.openToAll();
    in_home.env["HOME"] = home.path();
    in_home.env["GIT_CONFIG_NOSYSTEM"] = "1";
  }
  /// A repository in the workspace proj/.
  void repository(const std::string& config) const {
    workspace.write("proj/.git/HEAD", "ref: refs/heads/main\n");
    workspace.write("proj/.git/config", config);
    workspace.makeDir("proj/.git/objects");
    workspace.makeDir("proj/.git/refs");
  }
  void link(const std::string& target, const std::string& name) const { fs::create_symlink(target, workspace / name); }
  [[nodiscard]] RunOutput scriptIn(const std::string& mode, const std::string& text) const {
    return script(text, {"--workspace", workspace / "proj:" + mode}, in_home);
  }
  /// A program in rw can write to none of these files, and make none of them.
  void expectProtected(const std::vector<std::string>& files) const {
    for (const std::string& file : files) {
      const std::string before = readFile(workspace / ("proj/" + file));
      const RunOutput output = scriptIn("rw", "mkdir -p $(dirname " + file + "); echo evil > " + file);
      EXPECT_EQ(readFile(workspace / ("proj/" + file)), before) << file << output.describe();
    }
    EXPECT_EQ(scriptIn("rw", "echo x > ordinary").exit_status, 0);
    EXPECT_EQ(readFile(workspace / "proj/ordinary"), "x\n");
  }
  TempDir home;
  RunOptions in_home;
};

TEST_F(LinkedPaths, HooksOfAConfigurationAreProtected) {
  CONFORMS("R-FILES-23");
  workspace.write("proj/dev/hooks/pre-commit", "old\n");
  for (const std::string& path : {std::string("~/src/proj/dev/hooks"), home / "src/proj/dev/hooks"}) {
    repository("[core]\n\thooksPath = " + path + "\n");
    expectProtected({"dev/hooks/pre-commit", "dev/hooks/pre-push"});
  }
  repository("[core]\n");
  home.write(".gitconfig", "[core]\n\thooksPath = ~/src/proj/dev/hooks\n");
  expectProtected({"dev/hooks/pre-commit", "dev/hooks/pre-push"});
}

TEST_F(LinkedPaths, ParentOfALinkIsThatOfItsTarget) {
  CONFORMS("R-FILES-23");
  repository("[core]\n\thooksPath = lnk/../hooks\n");
  workspace.write("proj/a/b/x", "x\n");
  workspace.write("proj/a/hooks/pre-commit", "old\n");
  link("a/b", "proj/lnk");
  expectProtected({"a/hooks/pre-commit", "a/hooks/pre-push"});
  const RunOutput output =
      scriptIn("rw", "rm lnk; mkdir -p evil/b evil/hooks; echo evil > evil/hooks/pre-commit; ln -s evil/b lnk");
  EXPECT_FALSE(fs::exists(workspace / "proj/lnk/../hooks/pre-commit")) << output.describe();
}

TEST_F(LinkedPaths, TargetsOfLinksAreProtected) {
  CONFORMS("R-FILES-23");
  workspace.write("proj/tools/vscode/tasks.json", "old\n");
  workspace.write("proj/tools/idea/x", "old\n");
  link(home / "src/proj/tools/vscode", "proj/.vscode");
  link("../alias/tools/idea", "proj/.idea");
  link("proj", "alias");
  expectProtected({"tools/vscode/tasks.json", "tools/vscode/launch.json", "tools/idea/x", "tools/idea/y"});
}

TEST_F(LinkedPaths, TargetsOfLinksWithSecretNamesAreHidden) {
  repository("[include]\n\tpath = ~/src/proj/conf/git.inc\n");
  workspace.write("proj/conf/git.inc", "[remote \"o\"]\n\turl = https://u:canary-1pw@h/x\n");
  workspace.write("proj/conf/local.txt", "canary-2\n");
  workspace.write("proj/conf/more.txt", "canary-3\n");
  workspace.write("proj/conf/plain.txt", "visible\n");
  link(home / "src/proj/conf/local.txt", "proj/.env");
  link("../alias/conf/more.txt", "proj/.env.local");
  link("proj", "alias");
  for (const char* mode : {"overlay", "ro", "rw"}) {
    const RunOutput output = scriptIn(mode, "cat conf/*");
    EXPECT_FALSE(contains(output.out, "canary")) << mode << output.describe();
    EXPECT_TRUE(contains(output.out, "visible")) << mode << output.describe();
  }
}

TEST_F(LinkedPaths, ConfigurationOfTheUserInTheWorkspaceIsProtected) {
  CONFORMS("R-FILES-23");
  repository("[core]\n");
  workspace.write("proj/dot/gitconfig", "[user]\n\tname = x\n");
  workspace.write("proj/dot/git/config", "[user]\n\tname = x\n");
  fs::create_symlink("src/proj/dot/gitconfig", home / ".gitconfig");
  fs::create_directory(home / ".config");
  fs::create_directory_symlink("../src/proj/dot/git", home / ".config/git");
  expectProtected({"dot/gitconfig", "dot/git/config"});
}

TEST_F(LinkedPaths, HooksOfAGitDirectoryOutsideAreProtected) {
  CONFORMS("R-FILES-23");
  const std::string store = home.makeDir("store");
  home.write("store/HEAD", "ref: refs/heads/main\n");
  home.write("store/config", "[core]\n\tworktree = " + workspace / "proj" + "\n");
  for (const char* directory : {"store/objects", "store/refs", "store/hooks"}) home.makeDir(directory);
  workspace.write("proj/.git", "gitdir: " + store + "\n");
  workspace.write("proj/ci/check", "old\n");
  fs::create_symlink(workspace / "proj/ci/check", store + "/hooks/pre-commit");
  expectProtected({"ci/check"});
}

TEST_F(LinkedPaths, ScriptsOfCommandsNeedNoSlash) {
  CONFORMS("R-FILES-23");
  repository(
      "[filter \"a\"]\n\tclean = sh zclean\n\tsmudge = \"cd sub && sh run\"\n\tprocess = env -C sub ./r3\n"
      "[diff \"b\"]\n\ttextconv = $(git rev-parse --show-toplevel)/r4\n\tcommand = \"\\\"$PWD\\\"/r5\"\n"
      "[alias]\n\tx = !${GIT_WORK_TREE:-.}/r6\n\ty = !make build\n\tz = !git log trunk\n");
  workspace.write("proj/zclean", "old\n");
  workspace.write("proj/sub/run", "old\n");
  workspace.write("proj/build/x", "old\n");
  workspace.write("proj/trunk", "old\n");
  expectProtected({"zclean", "sub/run", "sub/r3", "r4", "r5", "r6"});
  const RunOutput output = scriptIn("rw", "echo new > build/x; echo new > trunk");
  EXPECT_EQ(readFile(workspace / "proj/build/x"), "new\n") << "a directory is not a script" << output.describe();
  EXPECT_EQ(readFile(workspace / "proj/trunk"), "new\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
