// What a program in the sandbox can read of secrets in a workspace.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "functional/sandbox.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

constexpr const char* kKey = "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary-key\n";

class WorkspaceSecrets : public SandboxTest, public testing::WithParamInterface<const char*> {
 protected:
  /// Reads everything below the workspace.
  RunOutput readAll(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> all{"--workspace", std::string(".:") + GetParam()};
    all.insert(all.end(), flags.begin(), flags.end());
    return script("find . -type f -exec cat {} + 2>/dev/null; true", all);
  }
  void git(const std::vector<std::string>& args) {
    std::vector<std::string> all{"git", "-C", workspace.path(), "-c", "user.name=a", "-c", "user.email=a@b"};
    all.insert(all.end(), args.begin(), args.end());
    const RunOutput output = runProgram(all);
    ASSERT_EQ(output.exit_status, 0) << output.describe();
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, WorkspaceSecrets, testing::Values("overlay", "ro", "rw"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(WorkspaceSecrets, AreHiddenAtEveryDepth) {
  CONFORMS("R-FILES-25");
  workspace.write("backend/.env", "canary-env\n");
  workspace.write("backend/.env.example", "template\n");
  workspace.write("app/certs/server.key", kKey);
  workspace.write("ops/deploy_key", kKey);
  workspace.write("deep/a/b/c/.npmrc", "canary-npm\n");
  const RunOutput hidden = readAll();
  EXPECT_EQ(hidden.out.find("canary"), std::string::npos) << hidden.out;
  EXPECT_NE(hidden.out.find("template"), std::string::npos);
  EXPECT_NE(hidden.err.find("backend/.env"), std::string::npos) << hidden.err;
  const RunOutput shown = readAll({"--show-secrets"});
  EXPECT_NE(shown.out.find("canary-env"), std::string::npos);
  EXPECT_NE(shown.out.find("canary-key"), std::string::npos);
}

/// A project that anybody publishes, and one that a program prepares for the next run.
TEST_P(WorkspaceSecrets, AreHiddenWhateverLooksLikeARepository) {
  for (const auto& shape : {std::vector<const char*>{"HEAD", "commondir"}, {"HEAD", "objects", "refs"}}) {
    for (const char* name : shape) workspace.write(name, "");
    for (const char* place : {"", "conf/", "x/.GIT/", ".git/sub/", ".git/objects/ab/", "a/.git/refs/b/"}) {
      workspace.write(std::string(place) + ".env", "canary-env\n");
      workspace.write(std::string(place) + "deploy_key", kKey);
    }
    workspace.write("code", "visible\n");
    const RunOutput output = readAll();
    EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.out;
    EXPECT_NE(output.out.find("visible"), std::string::npos) << output.describe();
    for (const char* name : shape) std::filesystem::remove(workspace / name);
  }
}

TEST_P(WorkspaceSecrets, AreHiddenInProtectedDirectories) {
  for (const char* place : {".ssh/id_ed25519", ".vscode/.env", ".github/a/.env", ".claude/.env"}) {
    workspace.write(place, "canary\n");
  }
  workspace.write(".vscode/tasks.json", "visible\n");
  const RunOutput output = readAll();
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.out;
  EXPECT_NE(output.out.find("visible"), std::string::npos) << output.describe();
}

TEST_P(WorkspaceSecrets, TargetsOfSecretLinksAreHidden) {
  workspace.write("config/local.txt", "canary-1\n");
  workspace.write("keys/main", kKey);
  workspace.write("keys/other", kKey);
  workspace.write("config/public.txt", "-----BEGIN CERTIFICATE-----\nvisible-1\n");
  workspace.write(".env.example", "visible-2\n");
  workspace.write("envs/a.txt", "visible-3\n");
  for (const auto& [link, target] : {std::pair<std::string, std::string>{".env", "config/local.txt"},
                                     {"a/id_rsa", workspace / "keys/main"},
                                     {"a/deploy_key", "../b/way/other"},
                                     {"b/way", "../keys"},
                                     {"cert.pem", "config/public.txt"},
                                     {"c/.env", "../.env.example"},
                                     {".env.local", "envs"},
                                     {"d/.env", "../d/.env"},
                                     {"e/.env", "../../../nowhere"}}) {
    std::filesystem::create_directories(std::filesystem::path(workspace / link).parent_path());
    ASSERT_EQ(::symlink(target.c_str(), (workspace / link).c_str()), 0);
  }
  const RunOutput output = readAll();
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.out;
  for (const char* shown : {"visible-1", "visible-2", "visible-3"}) {
    EXPECT_NE(output.out.find(shown), std::string::npos) << shown << output.describe();
  }
  for (const char* named : {".env", "config/local.txt", "a/id_rsa", "keys/main"}) {
    EXPECT_NE(output.err.find(named), std::string::npos) << output.err;
  }
}

TEST_P(WorkspaceSecrets, FilesThatAreClosedToTheirOwnerAreHidden) {
  requireOrSkip(::geteuid() != 0, "root may read everything");
  workspace.write("ops/deploy_key", kKey);
  workspace.write("closed/deploy_key", kKey);
  workspace.write("listed/server_key", kKey);
  workspace.write("unlisted/deploy_key", kKey);
  workspace.write("code", "visible\n");
  const std::pair<const char*, mode_t> modes[] = {
      {"ops/deploy_key", 0}, {"closed", 0}, {"listed", 0600}, {"unlisted", 0300}};
  for (const auto& [path, mode] : modes) ASSERT_EQ(::chmod((workspace / path).c_str(), mode), 0);
  const RunOutput output =
      script("chmod -R u+rwX . 2>/dev/null; cat ops/* closed/* listed/* unlisted/* */deploy_key code 2>/dev/null; true",
             {"--workspace", std::string(".:") + GetParam()});
  EXPECT_EQ(output.out, "visible\n") << output.describe();
  for (const auto& [path, mode] : modes) {
    struct stat status{};
    ASSERT_EQ(::stat((workspace / path).c_str(), &status), 0);
    // In `rw` a program may change the mode of what is not hidden.
    const bool changed = std::string(GetParam()) == "rw" && path == std::string("listed");
    EXPECT_TRUE(changed || (status.st_mode & 07777) == mode) << path;
    ::chmod((workspace / path).c_str(), 0700);
  }
}

TEST_P(WorkspaceSecrets, CertificatesAreShown) {
  workspace.write("venv/certifi/cacert.pem", "-----BEGIN CERTIFICATE-----\npublic\n");
  EXPECT_NE(readAll().out.find("public"), std::string::npos);
}

TEST_P(WorkspaceSecrets, GitWorksWithoutTheCredentialsOfItsConfiguration) {
  workspace.write("file", "content\n");
  git({"init", "-q", "-b", "main"});
  git({"add", "file"});
  git({"commit", "-q", "-m", "first"});
  git({"remote", "add", "origin", "https://me:canary-token@example.org/x.git"});
  const RunOutput output = script("git status --short && git log --oneline && git remote -v && cat .git/config",
                                  {"--workspace", std::string(".:") + GetParam()});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_NE(output.out.find("first"), std::string::npos) << output.describe();
  EXPECT_NE(output.out.find("example.org/x.git"), std::string::npos) << output.describe();
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.out;
  EXPECT_NE(readFile(workspace / ".git/config").find("canary-token"), std::string::npos) << "the host's file changed";
}

TEST_P(WorkspaceSecrets, GitWorksWithTheKnownKeysOfItsConfiguration) {
  workspace.write("file", "content\n");
  git({"init", "-q", "-b", "main"});
  git({"add", "file"});
  git({"commit", "-q", "-m", "first"});
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"imap.pass", "canary"},
                                   {"credential.helper", "!f() { echo password=canary; }; f"},
                                   {"http.proxy", "http://u:canary@proxy:1"},
                                   {"gitlab.private-token", "canary"},
                                   {"remote.o.url", "https://example.org/x.git?private_token=canary"},
                                   {"core.editor", "vi \"-c x\" # y"},
                                   {"color.ui", "auto"},
                                   {"push.default", "simple"},
                                   {"branch.main.remote", "o"}}) {
    git({"config", key, value});
  }
  workspace.write(".gitmodules", "[submodule \"s\"]\n\tpath = s\n\turl = https://me:canary@example.org/s\n");
  workspace.write(".git/config.bak", readFile(workspace / ".git/config"));
  const RunOutput output = script(
      "git status --short && git log --oneline && git config core.editor && git config branch.main.remote && git "
      "config "
      "push.default && cat .git/config .git/config.bak .gitmodules",
      {"--workspace", std::string(".:") + GetParam()});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.out;
  for (const char* shown : {"first", "\nvi \"-c x\" # y\no\nsimple\n", "imap.pass", "example.org/x.git?REDACTED"}) {
    EXPECT_NE(output.out.find(shown), std::string::npos) << shown << output.describe();
  }
}

TEST_P(WorkspaceSecrets, FileThatOnlyStandsWhereGitLooksIsJudgedAsAnyOther) {
  workspace.write("token", "ghp_canary7abcdefghijklmnopqrstuvwxyz01\n");
  workspace.write("settings.ini", "[core]\npassword = canary2hunter\n");
  workspace.write("deploy_key", "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n-----END OPENSSH PRIVATE KEY-----\n");
  workspace.write(".gitmodules", "[include]\n\tpath = token\n\tpath = settings.ini\n\tpath = deploy_key\n");
  workspace.write("shaped/HEAD", "");
  workspace.write("shaped/objects/x", "");
  workspace.write("shaped/refs/x", "");
  workspace.write("shaped/config.ini", "[db]\npassword = canary2hunter\n");
  workspace.write("shaped/config.toml", "[a]\nb_c = 'visible'\n");
  const RunOutput output = script("cat token settings.ini deploy_key shaped/config.ini shaped/config.toml 2>/dev/null",
                                  {"--workspace", std::string(".:") + GetParam()});
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.describe();
  EXPECT_NE(output.out.find("visible"), std::string::npos) << output.describe();
}

TEST_P(WorkspaceSecrets, ConfigurationOfGitThatIsALinkIsShownWithoutCredentials) {
  git({"init", "-q", "-b", "main"});
  workspace.write("dot/mine", readFile(workspace / ".git/config") + "[remote \"o\"]\n\turl = https://b:canary@h/x\n");
  ASSERT_EQ(::unlink((workspace / ".git/config").c_str()), 0);
  ASSERT_EQ(::symlink("../dot/mine", (workspace / ".git/config").c_str()), 0);
  const RunOutput output = script("cat .git/config dot/mine", {"--workspace", std::string(".:") + GetParam()});
  EXPECT_EQ(output.out.find("canary"), std::string::npos) << output.describe();
  EXPECT_NE(output.out.find("REDACTED@h/x"), std::string::npos) << output.describe();
}

TEST_P(WorkspaceSecrets, GitDirectoryWithoutItsHeadIsStillOne) {
  ASSERT_EQ(runProgram({"git", "init", "-q", "--bare", workspace / "x.git"}).exit_status, 0);
  ASSERT_EQ(
      runProgram({"git", "--git-dir", workspace / "x.git", "config", "http.proxy", "http://u:canary@p:1"}).exit_status,
      0);
  workspace.openToAll();
  const std::vector<std::string> mode{"--workspace", std::string(".:") + GetParam()};
  for (const char* part : {"HEAD", "refs"}) {
    (void)::rename((workspace / "x.git/" + part).c_str(), (workspace / "x.git/moved-" + part).c_str());
    const RunOutput output = script("cat x.git/config; echo x > x.git/hooks/pre-commit", mode);
    EXPECT_EQ(output.out.find("canary"), std::string::npos) << part << output.describe();
    EXPECT_NE(output.out.find("bare = true"), std::string::npos) << part << output.describe();
    EXPECT_FALSE(exists(workspace / "x.git/hooks/pre-commit")) << part;
  }
}

TEST_P(WorkspaceSecrets, StayHiddenWhenTheHostReplacesThem) {
  if (std::string(GetParam()) == "rw") return;  // documented: docs/workspace.md
  workspace.write(".env", "canary\n");
  workspace.write("denied", "canary\n");
  const RunOutput output = onHost(std::string("$CAISSON run -q --workspace .:") + GetParam() +
                                  " --deny denied --deny later -- sh -c 'i=0; while [ $i -lt 40 ]; do cat .env denied "
                                  "later; i=$((i+1)); sleep 0.01; done; echo ran' "
                                  "2>/dev/null & i=0; while [ $i -lt 40 ]; do for f in .env denied later; do echo "
                                  "canary > fresh; mv fresh $f; done; "
                                  "i=$((i+1)); sleep 0.01; done; wait $!; echo end");
  EXPECT_EQ(output.out, "ran\nend\n") << output.describe();
}

/// Its name says nothing: only the configuration of the repository that includes it.
TEST_P(WorkspaceSecrets, IncludedConfigurationsStayHiddenWhenTheHostReplacesThem) {
  if (std::string(GetParam()) == "rw") return;  // documented: docs/workspace.md
  git({"init", "-q", "-b", "main"});
  git({"config", "include.path", "../team.inc"});
  workspace.write("team.inc", "[url \"https://me:canary@example.org\"]\n");
  const RunOutput output =
      onHost(std::string("$CAISSON run -q --workspace .:") + GetParam() +
             " -- sh -c 'i=0; while [ $i -lt 40 ]; do cat team.inc; i=$((i+1)); sleep 0.01; done; "
             "echo ran' 2>/dev/null | grep -e canary -e ran & i=0; while [ $i -lt 40 ]; do "
             "cp team.inc fresh.inc; mv fresh.inc team.inc; i=$((i+1)); sleep 0.01; done; wait $!; echo end");
  EXPECT_EQ(output.out, "ran\nend\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
