// Which files of a workspace and of a home a program in the sandbox can read: the corpus in tests/security/secrets, and
// `--show-file`.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "functional/sandbox.h"
#include "support/conforms.h"
#include "support/environment.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using CorpusNames = std::set<std::string>;

std::string decodeBase64(const std::string& text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) continue;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> static_cast<unsigned>(count -= 8) & 0xFFU);
  }
  return bytes;
}

class SecretCorpus : public SandboxTest, public testing::WithParamInterface<const char*> {
 protected:
  /// Lays out the files of a category, or all others, and returns their names, with the targets of links.
  CorpusNames layOut(const std::string& file, bool of_home) {
    CorpusNames names;
    std::ifstream lines(sourceFile("tests/security/secrets/" + file));
    EXPECT_TRUE(lines) << file;
    for (std::string line; std::getline(lines, line);) {
      const Json one = Json::parse(line);
      if ((one["category"] == "home") != of_home) continue;
      const std::string path = one["path"], kind = one["kind"], text = one["content"];
      const std::string target = kind == "file" ? path : std::string(one["target"]);
      fs::create_directories(fs::path(workspace / path).parent_path());
      workspace.write(target, text.starts_with("base64:") ? decodeBase64(text.substr(7)) : text);
      names.insert(path);
      names.insert(target);
      if (kind == "hardlink") fs::create_hard_link(workspace / target, workspace / path);
      if (kind == "symlink") fs::create_symlink(workspace / target, workspace / path);
    }
    EXPECT_FALSE(names.empty());
    return names;
  }

  /// Lines of `cksum`: one for each file with its size and name. A file that is shown in part has another sum.
  static CorpusNames sumsOf(const std::string& text) {
    CorpusNames sums;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) sums.insert(line);
    return sums;
  }

  /// The names of files that a program reads in the sandbox as they are on the host.
  CorpusNames readable(const RunOptions& how = {}) {
    const std::string sum = "find . ! -type d -exec cksum {} + 2>/dev/null; true";
    const RunOutput host = onHost(sum);
    const RunOutput inside = script(sum, {"-q", "--workspace", workspace.path() + ":" + GetParam()}, how);
    EXPECT_EQ(inside.exit_status, 0) << inside.describe();
    const CorpusNames same = sumsOf(inside.out);
    CorpusNames names;
    for (const std::string& line : sumsOf(host.out)) {
      if (same.contains(line)) names.insert(line.substr(line.find("./") + 2));
    }
    return names;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, SecretCorpus, testing::Values("overlay", "ro", "rw"),
                         [](const auto& mode) { return std::string(mode.param); });

/// docs/secret-files.md names the files that are readable.
TEST_P(SecretCorpus, SecretFilesOfAProjectAreHiddenAndOrdinaryOnesAreNot) {
  CONFORMS("R-FILES-25");
  CorpusNames secret = layOut("secret_files.jsonl", false), ordinary = layOut("ordinary_files.jsonl", false);
  secret.merge(layOut("secret_files_2.jsonl", false));
  ordinary.merge(layOut("ordinary_files_2.jsonl", false));
  const CorpusNames shown = readable();
  CorpusNames leaked, missing;
  std::ranges::set_intersection(secret, shown, std::inserter(leaked, leaked.end()));
  std::ranges::set_difference(ordinary, shown, std::inserter(missing, missing.end()));
  EXPECT_EQ(leaked, CorpusNames{"data/dump.sql"});
  EXPECT_TRUE(missing.empty()) << testing::PrintToString(missing);
}

TEST_P(SecretCorpus, SecretFilesOfAHomeAreHidden) {
  CONFORMS("R-FILES-15");
  const CorpusNames secret = layOut("secret_files.jsonl", true);
  workspace.write("notes/plan.txt", "visible\n");
  fs::create_directories(workspace / ".config/caisson");  // `rw` is refused without it
  RunOptions how;
  how.env["HOME"] = workspace.path();
  const CorpusNames shown = readable(how);
  EXPECT_TRUE(shown.contains("notes/plan.txt")) << testing::PrintToString(shown);
  CorpusNames leaked;
  std::ranges::set_intersection(secret, shown, std::inserter(leaked, leaked.end()));
  EXPECT_TRUE(leaked.empty()) << testing::PrintToString(leaked);
}

class SecretFiles : public SandboxTest, public testing::WithParamInterface<const char*> {
 protected:
  RunOutput readAll(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--workspace", workspace.path() + ":" + GetParam()});
    return script("find . -type f -exec cat {} + 2>/dev/null; true", flags);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, SecretFiles, testing::Values("overlay", "ro", "rw"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(SecretFiles, OneCanBeShown) {
  workspace.write("app/.env", "canary-1\n");
  workspace.write("app/.npmrc", "//registry.example.org/:_authToken=canary-2-token\n");
  workspace.write(".ssh/config", "canary-3\n");
  workspace.write(".ssh/id_ed25519", "canary-4\n");
  const RunOutput hidden = readAll({});
  EXPECT_FALSE(contains(hidden.out, "canary")) << hidden.out;
  EXPECT_TRUE(contains(hidden.err, "--show-file")) << hidden.err;
  const RunOutput shown = readAll({"--show-file", "app/.env", "--show-file", ".ssh/config"});
  EXPECT_TRUE(contains(shown.out, "canary-1")) << shown.describe();
  EXPECT_FALSE(contains(shown.out, "canary-2")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "canary-3")) << shown.describe();
  EXPECT_FALSE(contains(shown.out, "canary-4")) << shown.out;
}

TEST_P(SecretFiles, ThatAreShownAreOnRecord) {
  workspace.write("app/.env", "canary-1\n");
  const RunOutput shown =
      run({"--json", "--show-file", "app/.env", "--workspace", workspace.path() + ":" + GetParam()}, {"true"});
  const Json result = Json::parse(shown.out);
  EXPECT_TRUE(contains(result["warnings"].dump(), "app/.env is shown")) << shown.out;
  const RunOutput log = runCaisson({"audit", "show"});
  EXPECT_TRUE(contains(log.out, "app/.env")) << log.out;
}

TEST_P(SecretFiles, ArePlannedWithTheReason) {
  workspace.write("app/.env", "canary-1\n");
  workspace.write("app/deploy", "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary-2\n");
  const RunOutput text = runCaisson({"plan", "--workspace", workspace.path() + ":" + GetParam(), "--", "true"});
  EXPECT_TRUE(contains(text.out, "environment")) << text.describe();
  EXPECT_TRUE(contains(text.out, "a private key")) << text.describe();
  const RunOutput described =
      runCaisson({"plan", "--json", "--workspace", workspace.path() + ":" + GetParam(), "--", "true"});
  EXPECT_EQ(Json::parse(described.out)["hidden_files"]["app/.env"], "environment") << described.out;
}

TEST_P(SecretFiles, AreJudgedWithTheDirectoriesAboveTheWorkspace) {
  workspace.write("home/.aws/credentials", "canary-1\n");
  workspace.write("home/.aws/notes.txt", "visible-1\n");
  workspace.write("home/.ssh/anything", "canary-2\n");
  for (const std::string directory : {".aws", ".ssh"}) {
    const RunOutput output =
        script("find . -type f -exec cat {} +; true",
               {"-q", "--workspace", workspace / ("home/" + directory) + ":" + GetParam(), "--allow-exec-config"});
    EXPECT_FALSE(contains(output.out, "canary")) << output.out;
    EXPECT_EQ(contains(output.out, "visible-1"), directory == ".aws") << output.describe();
  }
}

TEST_P(SecretFiles, PublicKeysAndCertificatesStay) {
  workspace.write("release.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nvisible-1\n");
  workspace.write("certs/ca", "-----BEGIN CERTIFICATE-----\nvisible-2\n");
  fs::create_symlink("ca", workspace / "certs/server.pem");
  workspace.write("id_ed25519.pub", "ssh-ed25519 visible-3\n");
  const RunOutput output = readAll({});
  for (const char* shown : {"visible-1", "visible-2", "visible-3"}) {
    EXPECT_TRUE(contains(output.out, shown)) << shown << output.describe();
  }
  const RunOutput link = script("cat certs/server.pem", {"--workspace", workspace.path() + ":" + GetParam()});
  EXPECT_TRUE(contains(link.out, "visible-2")) << link.describe();
}

TEST_P(SecretFiles, LargeOnesAreReadToTheEnd) {
  const std::string filler(200'000, '#');
  workspace.write("bundle.pem", "-----BEGIN CERTIFICATE-----\n" + filler + "\n-----BEGIN PRIVATE KEY-----\ncanary-1\n");
  workspace.write("backup", filler + "\n-----BEGIN PRIVATE KEY-----\ncanary-2\n");
  workspace.write("keys.old", std::string(5'000'000, 'x') + "canary-3");
  const RunOutput output = readAll({});
  EXPECT_FALSE(contains(output.out, "canary")) << output.err;
}

/// Git finds a git directory of any name, and editors leave copies in it.
TEST_P(SecretFiles, CopiesInGitDirectoriesOfAnyNameLoseTheirCredentials) {
  const std::string config =
      "[remote \"o\"]\n\turl = https://u:canary-1@h/x\n[http]\n\textraheader = "
      "AUTHORIZATION: basic canary-2==\n";
  for (const std::string git : {".git", "repo.git", "dotgit.bak", ".git (copy)"}) {
    workspace.write(git + "/HEAD", "ref: refs/heads/main\n");
    workspace.makeDir(git + "/objects");
    workspace.makeDir(git + "/refs");
    for (const char* name : {"config", ".config.swp", "#config#", "config.bak", "config~", ".config~", ".config.un~"}) {
      workspace.write(git + "/" + name, config);
    }
    workspace.write(git + "/config.orig", std::string("b0VIM\0\1 ", 8) + config + "[core");
    workspace.write(git + "/branches/o", "https://u:canary-3@h/x\n");
    workspace.write(git + "/remotes/o", "URL: https://u:canary-4@h/x\n");
  }
  const RunOutput output = readAll({});
  EXPECT_FALSE(contains(output.out, "canary")) << output.describe();
  EXPECT_TRUE(contains(output.out, "refs/heads/main")) << output.describe();
}

using DeniedPattern = SandboxTest;

TEST_F(DeniedPattern, TwoStarsHideAtAnyDepth) {
  workspace.write("a.dump", "canary-1\n");
  workspace.write("a/b/c/x.dump", "canary-2\n");
  workspace.write("a/b/x.text", "visible-1\n");
  for (const char* mode : {"overlay", "ro"}) {
    const RunOutput output = script("find . -type f -exec cat {} +; true",
                                    {"--deny", "**/*.dump", "--workspace", workspace.path() + ":" + mode});
    EXPECT_FALSE(contains(output.out, "canary")) << output.out;
    EXPECT_TRUE(contains(output.out, "visible-1")) << output.describe();
    EXPECT_FALSE(contains(output.err, "not in the workspace now")) << output.err;
  }
}

class DeniedFile : public SandboxTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, DeniedFile, testing::Values("overlay", "ro", "rw"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(DeniedFile, IsHiddenUnderItsOtherNames) {
  workspace.write("dump/db.bin", "canary-1\n");
  workspace.write("d.bin", "canary-2\n");
  workspace.write("visible", "visible\n");
  ASSERT_EQ(::link((workspace / "dump/db.bin").c_str(), (workspace / "other.bin").c_str()), 0);
  ASSERT_EQ(::link((workspace / "d.bin").c_str(), (workspace / "e.bin").c_str()), 0);
  for (const std::string more : {"", "--show-secrets"}) {
    std::vector<std::string> flags{"--deny", "dump", "--deny", "d.bin", "--workspace", std::string(".:") + GetParam()};
    if (!more.empty()) flags.push_back(more);
    const RunOutput output = script("find . -type f -exec cat {} +; true", flags);
    EXPECT_FALSE(contains(output.out, "canary")) << more << output.describe();
    EXPECT_TRUE(contains(output.out, "visible")) << output.describe();
    EXPECT_TRUE(contains(output.err, "other names (hard links) of denied files: e.bin, other.bin"))
        << output.describe();
  }
}

TEST_P(DeniedFile, InANamedTreeIsHiddenUnderItsOtherNamesThere) {
  workspace.write("tree/d.bin", "canary\n");
  workspace.write("tree/visible", "visible\n");
  workspace.write("ws/x", "x\n");
  ASSERT_EQ(::link((workspace / "tree/d.bin").c_str(), (workspace / "tree/e.bin").c_str()), 0);
  const RunOutput output =
      script("cat " + workspace / "tree/e.bin" + " " + workspace / "tree/visible",
             {"--ro", "tree", "--deny", workspace / "tree/d.bin", "--workspace", std::string("ws:") + GetParam()});
  EXPECT_EQ(output.out, "visible\n") << output.describe();
}

TEST_F(DeniedPattern, ThatCannotBeEnforcedIsRefusedWithATrueHint) {
  workspace.write("lib/x", "x\n");
  const auto refusal = [&](const std::string& pattern, const std::string& mode, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--deny", pattern, "--workspace", workspace.path() + ":" + mode});
    return script("true", more).err;
  };
  EXPECT_TRUE(contains(refusal("**/.env*", "rw"), "DIR:overlay"));
  EXPECT_TRUE(contains(refusal(workspace / "**/.env*", "overlay"), "write it as '**/.env*'"));
  EXPECT_TRUE(contains(refusal("**/.env*", "overlay", {"--rw", workspace / "lib"}), "leave out --rw"));
  EXPECT_FALSE(contains(refusal("/srv/*.key", "overlay"), "DIR:overlay"));
}

}  // namespace
}  // namespace caisson::test
