// Directories that --ro and --rw name outside of the workspace are searched as the workspace is: secrets are hidden in
// them, and what the host would execute is protected where they are written directly.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class NamedTrees : public SandboxTest {
 protected:
  NamedTrees() {
    tree.write("src/main.c", "ordinary\n");
    tree.write("conf/deep/.env", "TOKEN=canary-in-env\n");
    tree.write(".git/config", "[remote \"origin\"]\n\turl = https://u:canary-in-url@host.test/x\n");
    tree.write(".git/HEAD", "ref: refs/heads/main\n");
    tree.makeDir(".git/objects");
    tree.makeDir(".git/refs");
    tree.write(".vscode/settings.json", "{}\n");
  }

  [[nodiscard]] std::string readAll() const {
    return "cat " + tree / "src/main.c" + " " + tree / "conf/deep/.env" + " " + tree / ".git/config" + "; true";
  }

  TempDir tree;
};

TEST_F(NamedTrees, SecretsInThemAreHidden) {
  CONFORMS("R-FILES-10");
  for (const std::string level : {"full", "process"}) {
    for (const std::string how : {"--ro", "--rw"}) {
      const RunOutput output = script(readAll(), {"--level", level, how, tree.path()});
      EXPECT_TRUE(contains(output.out, "ordinary")) << level << how << output.describe();
      EXPECT_FALSE(contains(output.out, "canary")) << level << how << output.describe();
      EXPECT_TRUE(contains(output.err, "conf/deep/.env")) << "the notice names it" << output.describe();
    }
  }
  const RunOutput shown = script(readAll(), {"--ro", tree.path(), "--show-secrets"});
  EXPECT_TRUE(contains(shown.out, "canary-in-env") && contains(shown.out, "canary-in-url")) << shown.describe();
}

TEST_F(NamedTrees, OneSecretFileCanBeShown) {
  tree.write("other/.env", "TOKEN=canary-in-other\n");
  const RunOutput output =
      script(readAll() + "; cat " + tree / "other/.env", {"--ro", tree.path(), "--show-file", tree / "conf/deep/.env"});
  EXPECT_TRUE(contains(output.out, "canary-in-env")) << output.describe();
  EXPECT_FALSE(contains(output.out, "canary-in-other")) << output.describe();
}

/// Who names a directory of secrets wants it; the result warns.
TEST_F(NamedTrees, NamedSecretsAreShown) {
  const TempDir home;
  home.write(".aws/credentials", "canary-in-aws\n");
  home.openToAll();
  const RunOutput output =
      script("cat " + home / ".aws/credentials", {"--ro", home / ".aws"}, {.env = {{"HOME", home.path()}}});
  EXPECT_EQ(output.out, "canary-in-aws\n") << output.describe();
  const auto result = script("true", {"--json", "--ro", home / ".aws"}, {.env = {{"HOME", home.path()}}}).json();
  EXPECT_TRUE(contains(result["warnings"].dump(), "usually holds keys or passwords")) << result.dump();
}

TEST_F(NamedTrees, PartThatTheWorkspacesSearchLeftOutIsSearched) {
  const RunOutput output = onHost(R"(name=$(printf 'd%.0s' $(seq 220)); top=$PWD
for i in $(seq 16); do mkdir $name && cd $name; done
mkdir sub; echo TOKEN=canary-in-env > sub/.env; echo ordinary > sub/file
deep=$(pwd -P); cd "$top"
"$CAISSON" run --ro "$deep" -- sh -c 'cd "$1" && cat sub/.env sub/file' sh "$deep")");
  EXPECT_FALSE(contains(output.out, "canary")) << output.describe();
  EXPECT_TRUE(contains(output.out, "ordinary")) << output.describe();
}

TEST_F(NamedTrees, NamedSecretOfTheWorkspaceIsShownWithAWarning) {
  workspace.write("notes.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary-key\n");
  const RunOutput output = script("cat " + workspace / "notes.txt", {"--ro", "notes.txt"});
  EXPECT_TRUE(contains(output.out, "canary-key")) << output.describe();
  const auto result = script("true", {"--json", "--ro", "notes.txt"}).json();
  EXPECT_TRUE(contains(result["warnings"].dump(), "notes.txt usually holds keys or passwords")) << result.dump();
}

TEST_F(NamedTrees, WhatTheHostWouldExecuteIsReadOnlyOrMovedAway) {
  CONFORMS("R-FILES-10");
  const std::string text = "cd " + tree.path() +
                           "; echo x >> .git/config || echo no; echo x > .vscode/tasks.json || echo no; "
                           "mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit; echo x > .envrc; "
                           "mv .git moved || echo no; echo built > out";
  const RunOutput output = script(text, {"--rw", tree.path()});
  EXPECT_EQ(output.out, "no\nno\nno\n") << output.describe();
  EXPECT_EQ(readFile(tree / "out"), "built\n");
  EXPECT_FALSE(std::filesystem::exists(tree / ".envrc")) << output.describe();
  EXPECT_FALSE(std::filesystem::exists(tree / "sub/.git/hooks/pre-commit")) << output.describe();
  EXPECT_TRUE(contains(output.err, "quarantined-files")) << output.describe();
  const RunOutput allowed = script(text, {"--rw", tree.path(), "--allow-exec-config"});
  EXPECT_TRUE(std::filesystem::exists(tree / ".envrc")) << allowed.describe();
}

TEST_F(NamedTrees, WrittenPartOfTheWorkspaceIsProtectedToo) {
  workspace.makeDir("lib");
  const RunOutput output = script("echo x > lib/.envrc; echo y > lib/ordinary", {"--rw", workspace / "lib"});
  EXPECT_TRUE(std::filesystem::exists(workspace / "lib/ordinary")) << output.describe();
  EXPECT_FALSE(std::filesystem::exists(workspace / "lib/.envrc")) << output.describe();
}

TEST_F(NamedTrees, DirectoriesOfHooksAreRefused) {
  tree.makeDir(".git/hooks");
  const RunOutput output = script("echo x > " + tree / ".git/hooks/pre-commit", {"--rw", tree / ".git/hooks"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "--allow-exec-config")) << output.describe();
  EXPECT_FALSE(std::filesystem::exists(tree / ".git/hooks/pre-commit"));
}

/// Each of two nested trees has its own masks.
TEST_F(NamedTrees, NestedTreesAreSearchedOnce) {
  tree.write("conf/.npmrc", "//host.test/:_authToken=canary-in-npmrc-0123456789\n");
  const RunOutput output = script(readAll() + "; cat " + tree / "conf/.npmrc" + "; echo new > " + tree / "conf/new" +
                                      "; echo x > " + tree / "src/new" + " || echo no",
                                  {"--ro", tree.path(), "--rw", tree / "conf"});
  EXPECT_FALSE(contains(output.out, "canary")) << output.describe();
  EXPECT_TRUE(contains(output.out, "no\n")) << output.describe();
  EXPECT_EQ(readFile(tree / "conf/new"), "new\n");
}

/// What lies in another shown tree was there before the run as well: nothing of it is moved away.
TEST_F(NamedTrees, FilesInNestedTreesAreNotTakenForNewOnes) {
  const std::vector<std::string> files = {"app/.git/config", "app/.git/hooks/pre-commit", "app/.vscode/tasks.json",
                                          ".ssh/config", "lib/.envrc"};
  for (const std::string& file : files) tree.write(file, "old\n");
  for (const char* file : {"HEAD", "objects/x", "refs/x"}) tree.write("app/.git/" + std::string(file), "ref: x\n");
  tree.openToAll();
  const std::string app = tree / "app";
  const std::vector<std::vector<std::string>> uses = {
      {"--workspace", app, "--rw", tree.path()},
      {"--workspace", app + ":ro", "--rw", tree.path()},
      {"--workspace", app + ":rw", "--rw", tree.path()},
      {"--workspace", ":none", "--rw", tree.path(), "--ro", tree / ".ssh"},
      {"--workspace", ":none", "--rw", tree.path(), "--rw", app},
      {"--workspace", ":none", "--rw", tree.path(), "--deny", app},
  };
  for (const auto& use : uses) {
    const RunOutput output =
        script("mkdir " + tree / "lib/.vscode" + "; echo x > " + tree / "lib/.vscode/tasks.json", use);
    for (const std::string& file : files) EXPECT_EQ(readFile(tree / file), "old\n") << file << output.describe();
    EXPECT_FALSE(std::filesystem::exists(tree / "lib/.vscode/tasks.json")) << output.describe();
  }
}

TEST_F(NamedTrees, SessionsHideAndProtectToo) {
  const TempDir home;
  home.openToAll();
  const RunOutput output = onHost(
      "export CAISSON_HOME=" + home.path() + "; id=$(\"$CAISSON\" session create --workspace :none --rw " +
      tree.path() + ") && \"$CAISSON\" session exec $id -- sh -c '" + readAll() + "; cd " + tree.path() +
      "; echo x >> .git/config || echo no; echo x > .envrc; echo y > out'; " + "\"$CAISSON\" session destroy $id");
  EXPECT_TRUE(contains(output.out, "ordinary") && contains(output.out, "no\n")) << output.describe();
  EXPECT_FALSE(contains(output.out, "canary")) << output.describe();
  EXPECT_EQ(readFile(tree / "out"), "y\n");
  EXPECT_FALSE(std::filesystem::exists(tree / ".envrc")) << output.describe();
  EXPECT_TRUE(contains(output.err, "quarantined-files")) << output.describe();
}

TEST_F(NamedTrees, PlanListsWhatIsHidden) {
  const RunOutput plan = onHost("\"$CAISSON\" plan --ro " + tree.path() + " -- true");
  EXPECT_TRUE(contains(plan.out, tree / "conf/deep/.env")) << plan.describe();
}

}  // namespace
}  // namespace caisson::test
