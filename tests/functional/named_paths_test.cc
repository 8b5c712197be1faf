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

/// A payload could make what the link leads to.
TEST_F(Paths, OwnPlacesBehindDanglingLinksAreNotWritable) {
  const TempDir home, state, dot;
  home.makeDir(".config");
  home.makeDir(".local/share");
  ASSERT_EQ(symlink((dot / "conf").c_str(), (home / ".config/caisson").c_str()), 0);
  ASSERT_EQ(symlink((dot / "data").c_str(), (home / ".local/share/caisson").c_str()), 0);
  home.openToAll();
  dot.openToAll();
  const RunOptions how{.env = {{"HOME", home.path()}, {"CAISSON_HOME", state.path()}},
                       .unset = {"XDG_CONFIG_HOME", "XDG_DATA_HOME"}};
  const std::string write =
      "cd " + dot.path() + " && mkdir -p conf data && echo x > conf/config.toml && echo x > data/x";
  for (const std::string option : {"--rw", "--workspace"}) {
    const RunOutput missing = script(write, {option, dot.path() + (option == "--rw" ? "" : ":rw")}, how);
    EXPECT_EQ(missing.exit_status, 125) << missing.describe();
    EXPECT_TRUE(contains(missing.err, "mkdir -p")) << missing.describe();
    EXPECT_FALSE(exists(dot / "conf") || exists(dot / "data"));
  }
  dot.makeDir("conf");
  const RunOutput state_missing = script(write, {"--rw", dot.path()}, how);
  EXPECT_TRUE(contains(state_missing.err, "own state: ") && contains(state_missing.err, "/data"))
      << state_missing.describe();
  dot.makeDir("data");
  dot.openToAll();
  (void)script(write, {"--rw", dot.path()}, how);
  EXPECT_FALSE(exists(dot / "conf/config.toml") || exists(dot / "data/x"));
}

TEST_F(Paths, LinksThatLeadToOwnPlacesAreNotWritable) {
  const TempDir home, dot;
  home.makeDir(".config");
  dot.makeDir("caisson");
  ASSERT_EQ(symlink((dot / "caisson").c_str(), (home / ".config/caisson").c_str()), 0);
  home.openToAll();
  const RunOptions how{.env = {{"HOME", home.path()}}, .unset = {"XDG_CONFIG_HOME", "XDG_DATA_HOME"}};
  const RunOutput output =
      script("cd " + home / ".config" + " && rm caisson && mkdir caisson", {"--rw", home / ".config"}, how);
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "could redirect")) << output.describe();
  EXPECT_TRUE(std::filesystem::is_symlink(home / ".config/caisson"));
}

/// The other name could be in a directory that a program writes.
TEST_F(Paths, ConfigurationWithHardLinksIsRefused) {
  const TempDir home;
  home.write(".config/caisson/config.toml", "");
  home.openToAll();
  const RunOptions how{.env = {{"HOME", home.path()}}, .unset = {"XDG_CONFIG_HOME"}};
  ASSERT_EQ(chmod((home / ".config/caisson/config.toml").c_str(), 0600), 0);
  EXPECT_EQ(script("true", {}, how).exit_status, 0);
  ASSERT_EQ(link((home / ".config/caisson/config.toml").c_str(), (workspace / "other.toml").c_str()), 0);
  const RunOutput output = script("echo x > other.toml", {"--workspace", workspace.path() + ":rw"}, how);
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "hard links") && contains(output.err, "make it a copy")) << output.describe();
  EXPECT_EQ(readFile(home / ".config/caisson/config.toml"), "");
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

TEST_F(Paths, OwnStateIsHiddenInBindMountsOfIt) {
  requireOrSkip(runsAsRoot(), "only root can mount");
  const TempDir state;
  const TempDir config;
  state.write("keys/canary", "canary\n");
  config.write("caisson/canary", "canary\n");
  for (const char* directory : {"bm/all", "bm/part", "bm/config"})
    std::filesystem::create_directories(workspace / directory);
  const RunOptions how{.env = {{"CAISSON_HOME", state.path()}, {"XDG_CONFIG_HOME", config.path()}}};
  const std::string mounted =
      "mount --bind $CAISSON_HOME bm/all && mount --bind $CAISSON_HOME/keys bm/part && "
      "mount --bind $XDG_CONFIG_HOME/caisson bm/config && ";
  const auto attempt = [&](const std::string& options) {
    return onHost("unshare -m sh -c '" + mounted + "$CAISSON run " + options +
                      " -- sh -c \"find / -name canary 2>/dev/null; for d in all part config; do echo x "
                      ">$PWD/bm/\\$d/new; echo x >bm/\\$d/new; done 2>/dev/null; echo ran\"'",
                  how);
  };
  for (const std::string options :
       {"--workspace .:rw", "--workspace .:overlay", "--workspace .:ro", "--workspace :none --rw .",
        "--workspace :none --ro bm", "--level process --workspace .:rw"}) {
    const RunOutput output = attempt(options);
    EXPECT_EQ(output.out, "ran\n") << options << output.describe();
  }
  for (const std::string place : {"bm/all", "bm/all/keys", "bm/part", "bm/config"}) {
    for (const std::string& options : {"--workspace " + place, "--rw " + place, "--ro " + place}) {
      const RunOutput output = attempt(options);
      EXPECT_EQ(output.exit_status, 125) << options << output.describe();
      EXPECT_TRUE(contains(output.err, "own state or configuration, mounted at")) << output.describe();
    }
  }
  EXPECT_FALSE(exists(state / "new") || exists(state / "keys/new") || exists(config / "caisson/new"));
}

TEST_F(Paths, DefaultStateIsHiddenBesideAnother) {
  const TempDir home;
  const TempDir state;
  home.write(".local/share/caisson/audit/canary", "canary\n");
  const RunOptions how{.env = {{"HOME", home.path()}, {"CAISSON_HOME", state.path()}}, .unset = {"XDG_DATA_HOME"}};
  const std::string share = home / ".local/share";
  for (const std::string place : {"/caisson", "/caisson/audit"}) {
    const RunOutput output = run({"--rw", share + place}, {"ls", share + place}, how);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
  }
  const RunOutput above = script("find " + share + " -name canary; echo ran", {"--rw", share}, how);
  EXPECT_EQ(above.out, "ran\n") << above.describe();
}

/// Else a program rewrites the policies of the sessions there.
TEST_F(Paths, StateOfAnotherCaissonHomeIsHidden) {
  const TempDir data;
  const TempDir state;
  const std::string other_home = workspace.makeDir("other", 0700);
  const auto with = [&](const std::string& home) {
    return RunOptions{.env = {{"XDG_DATA_HOME", data.path()}, {"CAISSON_HOME", home}}};
  };
  const RunOutput used = run({"--workspace", ":none"}, {"true"}, with(other_home));
  ASSERT_EQ(used.exit_status, 0) << used.describe();
  workspace.write("other/sessions/cs-x/meta.json", "canary\n");
  for (const std::string mode : {"rw", "overlay", "ro"}) {
    const RunOutput output = script(
        "find . -name meta.json; cat other/sessions/cs-x/meta.json 2>/dev/null; "
        "(echo x > other/sessions/cs-x/meta.json) 2>/dev/null; mv other gone 2>/dev/null; echo ran",
        {"--workspace", ".:" + mode}, with(state.path()));
    EXPECT_EQ(output.out, "ran\n") << mode << output.describe();
  }
  const RunOutput inside = run({"--ro", other_home + "/sessions"}, {"true"}, with(state.path()));
  EXPECT_EQ(inside.exit_status, 125) << inside.describe();
  EXPECT_EQ(readFile(workspace / "other/sessions/cs-x/meta.json"), "canary\n");
}

TEST_F(Paths, DenyingAMissingPathCreatesNothingOnTheHost) {
  CONFORMS("R-FILES-26");
  const RunOutput overlay = script("true", {"--deny", "absent"});
  EXPECT_EQ(overlay.exit_status, 0) << overlay.describe();
  const RunOutput direct = script("true", {"--workspace", ".:rw", "--deny", "absent"});
  EXPECT_EQ(direct.exit_status, 125) << "can't be enforced, so it is refused " << direct.describe();
  EXPECT_TRUE(treeState(workspace.path()).empty());
}

TEST_F(Paths, DenyingWhatIsHiddenAnywayWorks) {
  workspace.write(".ssh/key", "canary-key\n");
  workspace.write("a/b/c", "canary-c\n");
  const std::string host = workspace / "a/b/c", absent = workspace / "a/absent";
  const std::vector<std::string> options[] = {{"--deny", ".ssh/key"},
                                              {"--deny", ".ssh/absent"},
                                              {"--deny", "/workspace/a", "--deny", host},
                                              {"--deny", host, "--deny", "/workspace/a"},
                                              {"--deny", absent, "--deny", "a"}};
  for (std::vector<std::string> words : options) {
    words.insert(words.end(), {"--workspace", ".:rw"});
    const RunOutput output = script("cat .ssh/key | grep -c key; mkdir .ssh/new; mv .ssh gone; echo ran", words);
    EXPECT_TRUE(contains(output.out, "0\nran\n")) << words[1] << output.describe();
    EXPECT_TRUE(std::filesystem::exists(workspace / ".ssh/key"));
  }
  const RunOutput missing = script("true", {"--workspace", ".:rw", "--deny", ".aws/key"});
  EXPECT_EQ(missing.exit_status, 125) << "nothing hides it yet " << missing.describe();
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
