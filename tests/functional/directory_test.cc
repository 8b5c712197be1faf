// Where the workspace is shown and where a program starts: `--same-path`, `--cwd`.
#include "functional/audit_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SamePath : public AuditTest {
 protected:
  [[nodiscard]] RunOutput runWith(const std::vector<std::string>& flags, const std::string& text) const {
    return run(flags, {"sh", "-c", text}, options());
  }
  [[nodiscard]] RunOutput inDirectory(const std::string& directory, const std::vector<std::string>& flags,
                                      const std::string& text) const {
    RunOptions how = options();
    how.cwd = directory;
    return run(flags, {"sh", "-c", text}, how);
  }
};

using Cwd = SamePath;

TEST_F(SamePath, ShowsTheWorkspaceAtItsOwnPath) {
  CONFORMS("R-FILES-24");
  workspace.write("sub/file", "content\n");
  for (const char* mode : {"overlay", "ro", "rw"}) {
    const RunOutput output = runWith({"--same-path", "--workspace", std::string(".:") + mode},
                                     "pwd; cat " + workspace.path() + "/sub/file /workspace/sub/file");
    EXPECT_EQ(output.out, workspace.path() + "\ncontent\ncontent\n") << mode << output.describe();
  }
  const RunOutput usual = runWith({}, "pwd; test -e " + workspace.path() + " || echo absent");
  EXPECT_EQ(usual.out, "/workspace\nabsent\n") << usual.describe();
}

TEST_F(SamePath, ShowsNothingElseOfTheDirectoriesAbove) {
  const TempDir other;
  const Canary canary(other / "canary");
  const std::string project = other.makeDir("project");
  const RunOutput output = inDirectory(project, {"--same-path"}, "ls -A ..; cat ../canary");
  EXPECT_FALSE(canary.leakedInto(output.out + output.err)) << output.describe();
  EXPECT_EQ(output.out, "project\n") << output.describe();
}

TEST_F(SamePath, HidesSecretsAndDeniedPathsUnderBothNames) {
  workspace.write(".env", "SECRET=1\n");
  workspace.write("private/key", "denied\n");
  for (const char* mode : {"overlay", "ro", "rw"}) {
    const RunOutput output =
        runWith({"--same-path", "--workspace", std::string(".:") + mode, "--deny", "private"},
                "cat .env /workspace/.env private/key /workspace/private/key " + workspace.path() + "/private/key");
    EXPECT_EQ(output.out, "") << mode << output.describe();
    EXPECT_NE(output.exit_status, 0) << mode;
  }
}

TEST_F(SamePath, HidesTheSecretsOfAHome) {
  const TempDir home;
  home.openToAll();
  home.write(".ssh/id_ed25519", "SECRET KEY\n");
  home.write("project/file", "content\n");
  RunOptions how = options();
  how.env["HOME"] = home.path();
  how.cwd = home / "project";
  const RunOutput project = run({"--same-path"}, {"sh", "-c", "cat file; cat ../.ssh/id_ed25519; ls -A .."}, how);
  EXPECT_EQ(project.out, "content\nproject\n") << project.describe();
  const RunOutput whole =
      run({"--same-path", "--workspace", home.path()}, {"sh", "-c", "cat project/file; cat .ssh/id_ed25519"}, how);
  EXPECT_EQ(whole.out, "content\n") << whole.describe();
}

TEST_F(SamePath, IsRefusedOverDirectoriesOfTheSystem) {
  for (const char* directory : {"/usr/share", "/etc", "/tmp", "/run", "/dev/shm"}) {
    const RunOutput output = runWith({"--same-path", "--workspace", std::string(directory) + ":ro"}, "echo started");
    EXPECT_EQ(output.exit_status, 125) << directory << output.describe();
    EXPECT_EQ(output.out, "") << output.describe();
    EXPECT_TRUE(contains(output.err, "--same-path")) << output.describe();
  }
}

TEST_F(SamePath, DirectoriesAboveTheWorkspaceCannotBeReplaced) {
  // The workspace of this test is below /tmp, which is the payload's own tmpfs inside.
  workspace.makeDir("deep/project");
  const std::string parent = workspace.path();
  const RunOutput output = inDirectory(workspace / "deep/project", {"--same-path"},
                                       "cd /; mv " + parent + " /tmp/elsewhere; mv " + parent +
                                           "/deep /tmp/elsewhere; ls -d " + parent + "/deep/project");
  EXPECT_EQ(output.out, parent + "/deep/project\n") << output.describe();
}

TEST_F(SamePath, OfAPolicyFile) {
  workspace.write("p.toml", "extends = \"bash\"\n[filesystem.workspace]\nsame_path = true\n");
  const RunOutput output = runWith({"--policy", workspace / "p.toml"}, "pwd");
  EXPECT_EQ(output.out, workspace.path() + "\n") << output.describe();
}

TEST_F(SamePath, InASession) {
  workspace.write("file", "content\n");
  ASSERT_EQ(caisson({"session", "create", "--name", "s", "--same-path"}).exit_status, 0);
  EXPECT_EQ(caisson({"session", "exec", "s", "--", "pwd"}).out, workspace.path() + "\n");
  EXPECT_EQ(caisson({"session", "exec", "--cwd", ".", "s", "--", "sh", "-c", "echo new > made; cat file"}).out,
            "content\n");
  for (const std::string& path : {std::string("made"), std::string("/workspace/made"), workspace / "made"}) {
    const RunOutput read = caisson({"session", "read", "s", path});
    EXPECT_EQ(read.out, "new\n") << path << read.describe();
  }
  ASSERT_EQ(caisson({"session", "checkpoint", "s", "c"}).exit_status, 0);
  EXPECT_EQ(caisson({"session", "exec", "s", "--", "cat", workspace / "made"}).out, "new\n");
  ASSERT_EQ(caisson({"session", "commit", "s", workspace / "made"}).exit_status, 0);
  EXPECT_EQ(readFile(workspace / "made"), "new\n");
  EXPECT_EQ(caisson({"session", "destroy", "s"}).exit_status, 0);
}

TEST_F(Cwd, IsRelativeToTheWorkspaceOrAbsoluteInside) {
  workspace.makeDir("src/deep");
  EXPECT_EQ(runWith({"--cwd", "src/deep"}, "pwd").out, "/workspace/src/deep\n");
  EXPECT_EQ(runWith({"--cwd", "./src/"}, "pwd").out, "/workspace/src\n");
  EXPECT_EQ(runWith({"--cwd", "/tmp"}, "pwd").out, "/tmp\n");
  EXPECT_EQ(runWith({"--cwd", "src", "--same-path"}, "pwd").out, workspace.path() + "/src\n");
  EXPECT_EQ(runWith({"--cwd", "src", "--level", "process"}, "pwd").out, workspace.path() + "/src\n");
  workspace.write("p.toml", "extends = \"bash\"\nworking_directory = \"src\"\n");
  EXPECT_EQ(runWith({"--policy", workspace / "p.toml"}, "pwd").out, "/workspace/src\n");
}

TEST_F(Cwd, ThatDoesNotExistIsRefusedWithItsName) {
  const RunOutput missing = runWith({"--cwd", "no/such"}, "echo started");
  EXPECT_EQ(missing.exit_status, 125) << missing.describe();
  EXPECT_TRUE(contains(missing.err, "no/such")) << missing.describe();
  EXPECT_EQ(missing.out, "");
  const RunOutput no_workspace = runWith({"--workspace", ":none", "--cwd", "src"}, "echo started");
  EXPECT_EQ(no_workspace.exit_status, 125) << no_workspace.describe();
  EXPECT_TRUE(contains(no_workspace.err, "--workspace DIR")) << no_workspace.describe();
  EXPECT_EQ(runWith({"--cwd", ""}, "true").exit_status, 125);
  EXPECT_EQ(runWith({"--cwd", "../.."}, "true").exit_status, 125);
}

TEST_F(Cwd, OfASessionIsTheDefaultOfItsCommands) {
  workspace.makeDir("src/deep");
  ASSERT_EQ(caisson({"session", "create", "--name", "s", "--cwd", "src"}).exit_status, 0);
  EXPECT_EQ(caisson({"session", "exec", "s", "--", "pwd"}).out, "/workspace/src\n");
  EXPECT_EQ(caisson({"session", "exec", "--cwd", "src/deep", "s", "--", "pwd"}).out, "/workspace/src/deep\n");
  EXPECT_EQ(caisson({"session", "read", "s", "src/../p"}).exit_status != 0, true);
  EXPECT_EQ(caisson({"session", "destroy", "s"}).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
