// Paths that a policy names: shown read-only or writable, denied, given by links.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Paths : public SandboxTest {};

TEST_F(Paths, ShownReadOnlyAndWritable) {
  CONFORMS("R-FILES-10");
  const TempDir shown;
  const TempDir writable;
  shown.write("file", "content\n");
  const RunOutput output =
      script("cat " + shown / "file" + "; touch " + shown / "new" + " || echo no; echo kept > " + writable / "new",
             {"--ro", shown.path(), "--rw", writable.path()});
  EXPECT_EQ(output.out, "content\nno\n") << output.describe();
  EXPECT_EQ(readFile(writable / "new"), "kept\n");
  struct stat status{};
  ASSERT_EQ(stat((writable / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, geteuid());
}

TEST_F(Paths, ASingleFileCanBeShown) {
  CONFORMS("R-FILES-10");
  const TempDir shown;
  shown.write("file", "content\n");
  shown.write("beside", "hidden\n");
  const RunOutput output = script("cat " + shown / "file" + "; ls " + shown.path(), {"--ro", shown / "file"});
  EXPECT_EQ(output.out, "content\nfile\n") << output.describe();
}

TEST_F(Paths, GivenByALinkAreShownAtTheLinksNameToo) {
  const TempDir shown, links;
  shown.write("file", "content\n");
  shown.write("secret", "hidden-content\n");
  ASSERT_EQ(symlink(shown.path().c_str(), (links / "tree").c_str()), 0);
  links.makeDir("deep");
  ASSERT_EQ(symlink((shown / "file").c_str(), (links / "deep/one").c_str()), 0);
  for (const std::string level : {"full", "process"}) {
    const RunOutput output =
        script("cat " + links / "tree/file" + " " + links / "tree/secret" + " " + links / "deep/one" + " " +
                   shown / "file" + " " + shown / "secret" + "; ls " + links.path(),
               {"--level", level, "--ro", links / "tree", "--ro", links / "deep/one", "--deny", links / "tree/secret"});
    EXPECT_EQ(output.out, "content\ncontent\ncontent\ndeep\ntree\n") << level << output.describe();
  }
  struct stat status{};
  ASSERT_EQ(lstat((links / "tree").c_str(), &status), 0);
  EXPECT_TRUE(S_ISLNK(status.st_mode)) << "the host's own link is unchanged";
}

TEST_F(Paths, DeniedByALinkAreHiddenUnderTheirRealName) {
  const TempDir shown, links;
  shown.write("file", "content\n");
  ASSERT_EQ(symlink(shown.path().c_str(), (links / "tree").c_str()), 0);
  const std::pair<std::string, std::string> cases[] = {{links / "tree", links / "tree"},
                                                       {links / "tree", links.path()},
                                                       {shown.path(), links / "tree"},
                                                       {shown.path(), links / "tree/file"}};
  for (const std::string level : {"full", "process"}) {
    for (const auto& [readable, denied] : cases) {
      const RunOutput output = script("cat " + shown / "file" + " " + links / "tree/file" + "; echo ran",
                                      {"--level", level, "--ro", readable, "--deny", denied});
      EXPECT_EQ(output.out, "ran\n") << level << " --ro " << readable << " --deny " << denied << output.describe();
    }
  }
}

/// It names programs that are run on the host.
TEST_F(Paths, TheOwnersConfigurationIsNeverWritable) {
  const TempDir home;
  home.makeDir(".config");
  home.openToAll();
  const RunOptions how{.env = {{"HOME", home.path()}, {"XDG_CONFIG_HOME", ""}}};
  const std::string write =
      "mkdir -p " + home / ".config/caisson" + "; echo x > " + home / ".config/caisson/config.toml";
  const RunOutput missing = script(write, {"--rw", home / ".config"}, how);
  EXPECT_EQ(missing.exit_status, 125) << missing.describe();
  EXPECT_TRUE(contains(missing.err, "mkdir -p")) << missing.describe();
  home.makeDir(".config/caisson");
  home.openToAll();
  (void)script(write, {"--rw", home / ".config"}, how);
  EXPECT_FALSE(std::filesystem::exists(home / ".config/caisson/config.toml"));
  EXPECT_EQ(script(write, {"--rw", home / ".config/caisson"}, how).exit_status, 125);
  EXPECT_FALSE(std::filesystem::exists(home / ".config/caisson/config.toml"));
}

TEST_F(Paths, SecretsOfAHomeAreHiddenInDirectoriesOfIt) {
  const TempDir home;
  home.write(".config/gh/hosts.yml", "token\n");
  home.write(".config/other", "content\n");
  home.openToAll();
  const RunOutput output = script("cat " + home / ".config/other" + " " + home / ".config/gh/hosts.yml",
                                  {"--ro", home / ".config"}, {.env = {{"HOME", home.path()}}});
  EXPECT_EQ(output.out, "content\n") << output.describe();
}

TEST_F(Paths, TildeIsTheCallersHome) {
  const TempDir home;
  home.write("data/file", "content\n");
  home.openToAll();
  const RunOptions how{.env = {{"HOME", home.path()}}};
  const std::string policy = workspace.write("p.toml", "filesystem.read_only = ['~/data']\n");
  const std::string read = "cat " + home / "data/file";
  EXPECT_EQ(script(read, {"--policy", policy}, how).out, "content\n");
  EXPECT_EQ(script(read, {"--ro=~/data"}, how).out, "content\n");
  workspace.write("p.toml", "filesystem.read_only = ['~root/data']\n");
  const RunOutput other = script("true", {"--policy", policy}, how);
  EXPECT_EQ(other.exit_status, 125);
  EXPECT_TRUE(contains(other.err, "only your own home directory")) << other.describe();
}

TEST_F(Paths, CredentialsThatAreNamedAreShownWithAWarning) {
  CONFORMS("R-FILES-15");
  const TempDir home;
  home.write(".ssh/id_ed25519", "a key\n");
  home.write("data/plain", "x");
  home.openToAll();
  const RunOptions how{.env = {{"HOME", home.path()}}};
  for (const char* path : {".ssh", ".ssh/id_ed25519"}) {
    const RunOutput output = run({"--json", "--ro", home / path}, {"cat", home / ".ssh/id_ed25519"}, how);
    EXPECT_EQ(output.json()["stdout"], "a key\n") << path << output.describe();
    EXPECT_TRUE(contains(output.json()["warnings"].dump(), "usually holds keys")) << path << output.describe();
  }
  EXPECT_FALSE(contains(run({"--json", "--ro", home / "data"}, {"true"}, how).out, "usually holds keys"));
}

TEST_F(Paths, UnnamedPathsAreInvisible) {
  CONFORMS("R-LEVEL-3", "R-FILES-10");
  const TempDir other;
  const Canary canary(other / "canary");
  const RunOutput output = script("cat " + canary.path() + "; ls " + other.path() +
                                  "; ls -A /tmp | wc -l; ls /home; ls /srv /opt /mnt /boot /media");
  EXPECT_FALSE(canary.leakedInto(output.out));
  EXPECT_EQ(output.out, "0\nsandbox\n") << output.describe();
}

TEST_F(Paths, DeniedWinsOverEverything) {
  CONFORMS("R-FILES-14");
  workspace.write("dir/secret", "hidden-content\n");
  workspace.write("dir/open", "open\n");
  workspace.write("file", "hidden-content\n");
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    const RunOutput output = script(
        "cat dir/open; cat file dir/secret; mv dir d2; cat d2/secret dir/secret; cp -r dir /tmp/c; cat /tmp/c/secret",
        {"--workspace", ".:" + mode, "--deny", "file", "--deny", "dir/secret"});
    EXPECT_TRUE(output.out.starts_with("open\n")) << mode << output.describe();
    EXPECT_FALSE(contains(output.out, "hidden-content")) << mode << output.describe();
    if (exists(workspace / "d2")) rename((workspace / "d2").c_str(), (workspace / "dir").c_str());
  }
  EXPECT_EQ(readFile(workspace / "dir/secret"), "hidden-content\n");
  EXPECT_EQ(readFile(workspace / "file"), "hidden-content\n");
}

TEST_F(Paths, DeniedPathsInAShownTreeAreHidden) {
  CONFORMS("R-FILES-14");
  const TempDir shown;
  shown.write("open", "open\n");
  shown.write("secret", "hidden-content\n");
  const RunOutput output =
      script("cat " + shown / "open" + " " + shown / "secret", {"--ro", shown.path(), "--deny", shown / "secret"});
  EXPECT_EQ(output.out, "open\n") << output.describe();
}

TEST_F(Paths, DenyingAMissingPathCreatesNothingOnTheHost) {
  CONFORMS("R-FILES-26");
  const RunOutput overlay = script("true", {"--deny", "absent"});
  EXPECT_EQ(overlay.exit_status, 0) << overlay.describe();
  const RunOutput direct = script("true", {"--workspace", ".:rw", "--deny", "absent"});
  EXPECT_EQ(direct.exit_status, 125) << "can't be enforced, so it is refused " << direct.describe();
  EXPECT_TRUE(treeState(workspace.path()).empty());
}

TEST_F(Paths, DeniedPatternsWorkInAnOverlayAndAreRefusedInADirectTree) {
  // Names that are not hidden anyway.
  workspace.write("a.dump", "hidden-content\n");
  workspace.write("sub/b.dump", "hidden-content\n");
  workspace.write("sub/deep/c.dump", "other-directory\n");
  workspace.write("c.txt", "open\n");
  const RunOutput direct = script("true", {"--workspace", ".:rw", "--deny", "*.dump"});
  EXPECT_EQ(direct.exit_status, 125) << direct.describe();
  const RunOutput overlay =
      script("cat c.txt a.dump sub/b.dump sub/deep/c.dump", {"--deny", "*.dump", "--deny", "sub/*.dump"});
  EXPECT_EQ(overlay.out, "open\nother-directory\n") << overlay.describe();
}

TEST_F(Paths, DeniedEntriesAreNamesAndPatterns) {
  for (const char* path : {"pages/[id].tsx", "pages/i.tsx", "pages/[slug]/a", "deep/er/.x.dump"}) {
    workspace.write(path, "canary\n");
  }
  workspace.write("pages/x.tsx", "visible\n");
  for (const char* mode : {".:overlay", ".:ro"}) {
    const RunOutput output =
        script("find . -type f -exec cat {} +", {"--workspace", mode, "--deny", "pages/[id].tsx", "--deny",
                                                 "pages/[slug]/a", "--deny", "*/er/*.dump", "--deny", "misspelt"});
    EXPECT_EQ(output.out, "visible\n") << output.describe();
    EXPECT_NE(output.err.find("denied, but not in the workspace now: misspelt\n"), std::string::npos) << output.err;
  }
}

}  // namespace
}  // namespace caisson::test
