#include "host/workspace_scan.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "host/covered.h"
#include "host/git_programs.h"
#include "support/temp_dir.h"
#include "sys/home_directory.h"

namespace caisson::host {
namespace {

constexpr const char* kKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
constexpr const char* kCertificate = "-----BEGIN CERTIFICATE-----\nabc\n";

class WorkspaceScanTest : public testing::Test {
 protected:
  [[nodiscard]] plan::WorkspaceScan scan(const ScanOptions& options = {}, ScanCache* cache = nullptr) const {
    return scanWorkspace(dir.path(), options, cache);
  }
  [[nodiscard]] bool isCovered(const plan::WorkspaceScan& scan, const std::string& path) const {
    return std::ranges::any_of(scan.covered, [&](const auto& one) {
      return path == one.path || path.starts_with(one.path + "/") || one.path == ".";
    });
  }
  [[nodiscard]] bool isProtected(const plan::WorkspaceScan& scan, const std::string& path) const {
    return std::ranges::any_of(scan.protected_paths, [&](const auto& one) { return one.path == path; });
  }
  void repository(const std::string& path, const std::string& config) {
    dir.write(path + "/HEAD", "ref: refs/heads/main\n");
    dir.write(path + "/config", config);
    dir.makeDir(path + "/objects");
    dir.makeDir(path + "/refs");
    dir.write(path + "/hooks/pre-commit", "#!/bin/sh\n");
  }
  test::TempDir dir;
};

TEST_F(WorkspaceScanTest, SecretsAreFoundAtEveryDepth) {
  dir.write("backend/.env", "x");
  dir.write("backend/.env.example", "x");
  dir.write("app/certs/server.key", kKey);
  dir.write("deploy/the_key", kKey);
  dir.write("docs/keys.txt", "how to make keys");
  EXPECT_EQ(scan().secrets, (std::vector<std::string>{"app/certs/server.key", "backend/.env", "deploy/the_key"}));
}

TEST_F(WorkspaceScanTest, CertificatesStayVisible) {
  dir.write("venv/certifi/cacert.pem", kCertificate);
  dir.write("venv/both.pem", std::string(kCertificate) + kKey);
  EXPECT_EQ(scan().secrets, (std::vector<std::string>{"venv/both.pem"}));
}

TEST_F(WorkspaceScanTest, GitConfigurationLosesItsCredentials) {
  repository("sub/.git", "[remote \"o\"]\n\turl = https://me:secret@example.org/x\n");
  repository("bare", "[core]\n\tbare = true\n");
  const auto found = scan();
  ASSERT_EQ(found.redacted.size(), 1U);
  EXPECT_EQ(found.redacted[0].path, "sub/.git/config");
  EXPECT_EQ(found.redacted[0].content.find("secret"), std::string::npos);
}

TEST_F(WorkspaceScanTest, GitConfigurationTooLargeToSearchIsHidden) {
  repository(".git", "[core]\n" + std::string(70'000, '#') + "\n[http]\n\textraheader = canary\n");
  EXPECT_EQ(scan().secrets, (std::vector<std::string>{".git/config"}));
}

TEST_F(WorkspaceScanTest, SubmodulesHaveConfigurationsToo) {
  repository(".git", "[core]\n");
  repository(".git/modules/lib", "[remote \"o\"]\n\turl = https://token@example.org/x\n");
  const auto found = scan();
  ASSERT_EQ(found.redacted.size(), 1U);
  EXPECT_EQ(found.redacted[0].path, ".git/modules/lib/config");
}

TEST_F(WorkspaceScanTest, ConfigurationsOfWorktreesAndIncludesLoseTheirCredentials) {
  constexpr const char* kToken = "[remote \"o\"]\n\turl = https://token@example.org/x\n";
  repository(".git", "[include]\n\tpath = ../git/extra\n\tpath = /elsewhere\n");
  dir.write(".git/worktrees/w/config.worktree", kToken);
  dir.write("git/extra", std::string(kToken) + "[includeIf \"gitdir:x\"]\n\tpath = ../git/./more\n\tpath = extra\n");
  dir.write("git/more", kToken);
  dir.write("git/other", kToken);
  std::set<std::string> paths;
  for (const auto& file : scan().redacted) {
    EXPECT_EQ(file.content.find("token"), std::string::npos) << file.path;
    paths.insert(file.path);
  }
  EXPECT_EQ(paths, (std::set<std::string>{".git/worktrees/w/config.worktree", "git/extra", "git/more"}));
}

TEST_F(WorkspaceScanTest, IncludesOfALinkedConfigurationAreReadFromTheLink) {
  constexpr const char* kToken = "[remote \"o\"]\n\turl = https://token@example.org/x\n";
  repository("r/.git", "");
  ASSERT_EQ(::unlink((dir / "r/.git/config").c_str()), 0);
  ASSERT_EQ(::symlink("../../other/text", (dir / "r/.git/config").c_str()), 0);
  dir.write("other/text", "[include]\n\tpath = ../more.inc\n\tpath = beside.inc\n");
  dir.write("r/more.inc", std::string(kToken) + "[include]\n\tpath = sub/last\n");
  for (const char* name : {"r/sub/last", "r/.git/beside.inc", "other/beside.inc", "more.inc"}) dir.write(name, kToken);
  std::set<std::string> paths;
  for (const auto& file : scan().redacted) {
    EXPECT_EQ(file.content.find("token"), std::string::npos) << file.path;
    paths.insert(file.path);
  }
  EXPECT_EQ(paths,
            (std::set<std::string>{"r/more.inc", "r/sub/last", "r/.git/beside.inc", "other/beside.inc", "more.inc"}));
}

TEST_F(WorkspaceScanTest, OtherConfigurationsOfGitLoseTheirCredentials) {
  constexpr const char* kToken = "[remote \"o\"]\n\turl = https://token@example.org/x\n";
  repository(".git", "[include]\n\tpath = ../link\n");
  ASSERT_EQ(::symlink("inc/real", (dir / "link").c_str()), 0);
  const std::set<std::string> names{".git/config.bak", ".gitmodules",        "a/.gitconfig", "b/.lfsconfig",
                                    "inc/real",        ".config/git/config", ".git/config~"};
  for (const std::string& name : names) dir.write(name, kToken);
  dir.write("src/config", kToken);
  std::set<std::string> paths;
  for (const auto& file : scan().redacted) {
    EXPECT_EQ(file.content.find("token"), std::string::npos) << file.path;
    paths.insert(file.path);
  }
  EXPECT_EQ(paths, names) << "and none that git does not read";
}

TEST_F(WorkspaceScanTest, ProtectedFilesAreFoundByNameAndShape) {
  repository("docs", "[core]\n");  // a bare repository under any name
  dir.write("sub/.envrc", "x");
  dir.write(".vscode/tasks.json", "{}");
  const policy::ProtectedFiles files;
  const auto found = scan({.protected_files = &files});
  EXPECT_TRUE(isProtected(found, "docs/config"));
  EXPECT_TRUE(isProtected(found, "docs/hooks"));
  EXPECT_TRUE(isProtected(found, "sub/.envrc"));
  EXPECT_TRUE(isProtected(found, ".vscode"));
  EXPECT_FALSE(isProtected(found, ".vscode/tasks.json")) << "the directory is protected as a whole";
}

TEST_F(WorkspaceScanTest, ShapeOfARepositoryEndsNoSearch) {
  for (const auto& shape : {std::vector<const char*>{"HEAD", "commondir"}, {"HEAD", "objects", "refs"}}) {
    for (const char* name : shape) dir.write(name, "");
    dir.write(".env", "x");
    dir.write("conf/.env", "x");
    dir.write("refs.d/id_rsa", "x");
    dir.write(".vscode/tasks.json", "{}");
    dir.write("sub/.bashrc", "x");
    repository("sub/.git", "[core]\n");
    const policy::ProtectedFiles files;
    EXPECT_EQ(scan().secrets, (std::vector<std::string>{".env", "conf/.env", "refs.d/id_rsa"}));
    const auto found = scan({.protected_files = &files});
    EXPECT_EQ(found.secrets, (std::vector<std::string>{".env", "conf/.env", "refs.d/id_rsa"}));
    for (const char* path : {".vscode", "sub/.bashrc", "sub/.git/hooks", "sub/.git/config"}) {
      EXPECT_TRUE(isProtected(found, path)) << path;
    }
    for (const char* name : {"HEAD", "commondir", "objects", "refs"}) std::filesystem::remove_all(dir / name);
  }
}

TEST_F(WorkspaceScanTest, NothingHidesInAGitDirectoryOfAnyName) {
  const policy::ProtectedFiles files;
  std::vector<std::string> places{"x/.GIT", "x/GIT~1", "x/.git", "empty/.git", "bare"};
  for (const char* path : {"x/.git", "bare"}) repository(path, "[core]\n");
  std::vector<std::string> secrets;
  for (const std::string& place : std::vector<std::string>(places)) {
    for (const char* below :
         {"objects/ab", "objects/pack", "refs/heads", "logs", "hooks", "info", "modules/m", "sub"}) {
      places.push_back(place + "/" + below);
    }
  }
  for (const std::string& place : places) {
    dir.write(place + "/.env", "x");
    dir.write(place + "/deep/deploy_key", kKey);
    secrets.push_back(place + "/.env");
    secrets.push_back(place + "/deep/deploy_key");
  }
  std::ranges::sort(secrets);
  EXPECT_EQ(scan().secrets, secrets);
  EXPECT_EQ(scan({.protected_files = &files}).secrets, secrets);
  ScanCache cache;
  EXPECT_EQ(scan({}, &cache).secrets, secrets);
  EXPECT_EQ(scan({}, &cache).secrets, secrets);
}

TEST_F(WorkspaceScanTest, GitMayWriteItsDataAndNoMoreInItsDirectory) {
  repository(".git", "[core]\n");
  for (const char* data : {"refs/heads/CLAUDE.md", "logs/refs/heads/mcp.json", "index.lock", "gc.pid"}) {
    dir.write(std::string(".git/") + data, "x");
  }
  dir.write("x/.GIT/sub/.envrc", "x");
  dir.write("x/.GIT/foo", "x");
  const policy::ProtectedFiles files;
  const auto found = scan({.protected_files = &files});
  std::set<std::string> paths;
  for (const auto& one : found.protected_paths) paths.insert(one.path);
  EXPECT_EQ(paths, (std::set<std::string>{".git/config", ".git/hooks", "x/.GIT/foo", "x/.GIT/sub/.envrc"}));
}

TEST_F(WorkspaceScanTest, SecretsInProtectedDirectoriesAreFound) {
  for (const char* place : {".ssh/id_ed25519", ".vscode/.env", ".github/a/.env", ".claude/.env"}) dir.write(place, "x");
  dir.write(".aws/deploy_key", kKey);
  const policy::ProtectedFiles files;
  const std::vector<std::string> secrets{".aws/deploy_key", ".claude/.env", ".github/a/.env", ".ssh", ".vscode/.env"};
  EXPECT_EQ(scan({.protected_files = &files}).secrets, secrets);
}

TEST_F(WorkspaceScanTest, LinksAreNotFollowed) {
  test::TempDir outside;
  outside.write(".env", "x");
  ASSERT_EQ(::symlink(outside.path().c_str(), (dir / "link").c_str()), 0);
  EXPECT_TRUE(scan().secrets.empty());
}

TEST_F(WorkspaceScanTest, FilesWithASecretNameThroughALinkAreFound) {
  test::TempDir outside;
  outside.write("x", "x");
  const auto link = [&](const std::string& path, const std::string& target) {
    std::filesystem::create_directories(std::filesystem::path(dir / path).parent_path());
    ASSERT_EQ(::symlink(target.c_str(), (dir / path).c_str()), 0);
  };
  for (const char* path : {"conf/a", "conf/b", "conf/c", "conf/.env.example"}) dir.write(path, "x");
  dir.write("conf/key", kKey);
  dir.write("conf/ca", kCertificate);
  link(".env", "conf/a");
  link("d/.netrc", dir / "conf/b");
  link("d/id_rsa", "../way/c");
  link("way", "../" + dir.path().substr(dir.path().rfind('/') + 1) + "/conf");
  link("d/deploy_key", "../conf/key");
  link("d/ca.pem", "../conf/ca");
  link("e/.env", "../conf/.env.example");
  link("f/.env", "../conf");
  link("g/.env", outside / "x");
  link("h/.env", ".env");
  link("h/deploy_key", "../conf/a");
  std::vector<std::string> expected{".env",         "conf/a",   "conf/b", "conf/c", "conf/key", "d/.netrc",
                                    "d/deploy_key", "d/id_rsa", "e/.env", "f/.env", "g/.env",   "h/.env"};
  EXPECT_EQ(scan().secrets, expected);
  expected.emplace_back("way");
  EXPECT_EQ(scan({.hold_links = true}).secrets, expected) << "a payload could replace the link on the way";
}

TEST_F(WorkspaceScanTest, FifoDoesNotBlock) {
  ASSERT_EQ(::mkfifo((dir / "server_key").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((dir / "x.pem").c_str(), 0600), 0);
  EXPECT_EQ(scan().secrets, (std::vector<std::string>{"x.pem"}));
}

TEST_F(WorkspaceScanTest, DirectoriesBeyondTheLimitAreCovered) {
  for (int i = 0; i < 30; ++i) dir.write("d" + std::to_string(i) + "/.env", "x");
  dir.write("node_modules/.env", "x");
  const auto found = scan({.max_entries = 100});
  EXPECT_TRUE(isCovered(found, "node_modules/.env")) << "searched last";
  for (int i = 0; i < 30; ++i) {
    const std::string path = "d" + std::to_string(i) + "/.env";
    EXPECT_NE(isCovered(found, path), std::ranges::find(found.secrets, path) != found.secrets.end()) << path;
  }
  EXPECT_EQ(found.covered.front().reason, "beyond the first 100 entries");
  EXPECT_TRUE(isCovered(scan({.max_entries = 10}), ".env")) << "all of the workspace";
}

TEST_F(WorkspaceScanTest, ManyCoversAreJoinedInDirectoriesAboveThem) {
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 40; ++k) dir.write("a" + std::to_string(i) + "/" + std::to_string(k) + "/.env", "x");
  }
  const auto found = scan({.max_entries = 2500});
  EXPECT_LE(found.covered.size(), kMaxCovered);
  EXPECT_FALSE(isCovered(found, "."));
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 40; ++k) {
      const std::string path = "a" + std::to_string(i) + "/" + std::to_string(k) + "/.env";
      EXPECT_TRUE(isCovered(found, path) || std::ranges::binary_search(found.secrets, path)) << path;
    }
  }
}

TEST_F(WorkspaceScanTest, UnreadableDirectoriesOfOthersAreCoveredWithTheReason) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a directory of another user";
  dir.write("closed/.env", "x");
  dir.write("open/.env", "x");
  ASSERT_EQ(::chmod((dir / "closed").c_str(), 0711), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const auto found = scan();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(found.covered.size(), 1U);
  EXPECT_EQ(found.covered[0].path, "closed");
  EXPECT_EQ(found.covered[0].reason, "no permission to read it");
  EXPECT_EQ(found.secrets, (std::vector<std::string>{"open/.env"}));
}

TEST_F(WorkspaceScanTest, DirectoriesBelowTooManyLevelsAreCovered) {
  std::string path = "top";
  dir.write("top/.env", "x");
  for (int i = 0; i < 36; ++i) path += "/" + std::string(100, 'd');
  dir.write(path + "/.env", "x");
  const auto found = scan();
  EXPECT_EQ(found.secrets, (std::vector<std::string>{"top/.env"}));
  EXPECT_TRUE(isCovered(found, path + "/.env"));
}

/// The search has no clock: a caller that makes it slow gets the same result.
TEST_F(WorkspaceScanTest, SlowSearchIsComplete) {
  std::vector<std::string> secrets;
  for (int i = 0; i < 3000; ++i) dir.makeDir("d" + std::to_string(i));
  dir.write("zz/config/.env", "x");
  std::size_t calls = 0;
  const auto found = scan({.progress = [&](std::size_t) {
    ++calls;
    ::usleep(50'000);
  }});
  EXPECT_GT(calls, 1U);
  EXPECT_EQ(found.secrets, (std::vector<std::string>{"zz/config/.env"}));
  EXPECT_TRUE(found.covered.empty());
}

TEST_F(WorkspaceScanTest, DependenciesAreScannedLast) {
  for (int i = 0; i < 30; ++i) dir.write("node_modules/a" + std::to_string(i) + "/file", "x");
  dir.write("src/deep/.env", "x");
  const auto found = scan({.max_entries = 40});
  EXPECT_EQ(found.secrets, (std::vector<std::string>{"src/deep/.env"}));
  EXPECT_TRUE(isCovered(found, "node_modules/a1"));
}

TEST_F(WorkspaceScanTest, MoreLinksThanAreFollowedAreAnIncompleteSearch) {
  dir.makeDir("a");
  for (int i = 0; i < 4200; ++i) {
    const std::string name = std::to_string(i) + ".code-workspace";
    ASSERT_EQ(::symlink(("../none/" + name).c_str(), (dir / ("a/" + name)).c_str()), 0);
  }
  const policy::ProtectedFiles files;
  EXPECT_GT(scan({.protected_files = &files}).unscanned_count, 0U);
}

TEST_F(WorkspaceScanTest, DirectoryThatHoldsMoreThanTheLimitIsCovered) {
  for (int i = 0; i < 1000; ++i) dir.write("big/" + std::to_string(i) + ".service", "x");
  const policy::ProtectedFiles files;
  ScanCache cache;
  const auto found = scan({.protected_files = &files, .max_entries = 100}, &cache);
  ASSERT_EQ(found.covered.size(), 1U);
  EXPECT_EQ(found.covered[0].path, "big");
  EXPECT_EQ(scan({.protected_files = &files}, &cache).protected_paths.size(), 1000U) << "the cache has a part only";
}

TEST_F(WorkspaceScanTest, GitDirectoriesAreScannedFirst) {
  for (int i = 0; i < 100; ++i) dir.write("a" + std::to_string(i) + "/file.dat", "x");
  repository(".git", "[core]\n");
  repository(".git/modules/lib", "[core]\n");
  const policy::ProtectedFiles files;
  std::size_t limit = 0;
  plan::WorkspaceScan found;
  do {
    limit += 10;
    found = scan({.protected_files = &files, .max_entries = limit});
  } while (!(isProtected(found, ".git/config") && isProtected(found, ".git/modules/lib/config")) && limit < 1000);
  EXPECT_FALSE(found.covered.empty()) << "before other directories, with the limit " << limit;
  for (int i = 0; i < 40; ++i) dir.write("app/" + std::to_string(i) + "/file", "x");
  repository("app/.git", "[core]\n");
  limit = 200;
  do {
    limit += 10;
    found = scan({.protected_files = &files, .max_entries = limit});
  } while (!isProtected(found, "app/.git/config") && limit < 1000);
  EXPECT_FALSE(found.covered.empty()) << "before other directories, with the limit " << limit;
}

TEST_F(WorkspaceScanTest, RepositoryAroundTheWorkspaceNamesPrograms) {
  repository(".git", "[core]\n\thooksPath = work/hooks\n");
  dir.write("work/hooks/pre-push", "x");
  const policy::ProtectedFiles files;
  const auto found = scanWorkspace(dir / "work", {.secrets = false, .protected_files = &files});
  EXPECT_TRUE(isProtected(found, "hooks"));
  dir.write("work/.git/HEAD", "ref: x");
  EXPECT_TRUE(isProtected(scanWorkspace(dir / "work", {.secrets = false, .protected_files = &files}), "hooks"))
      << "git in the outer repository still executes it";
}

TEST_F(WorkspaceScanTest, DirectoryThatTheHostExecutesIsProtectedAsAWhole) {
  repository("bare", "[core]\n");
  dir.makeDir("x");
  for (const char* place : {"x/.vscode", "x/.claude/commands", "bare/hooks", "x/.git/hooks"}) {
    dir.write(std::string(place) + "/file", "x");
    const policy::ProtectedFiles files({}, dir / place);
    const auto found = scanWorkspace(dir / place, {.secrets = false, .protected_files = &files});
    EXPECT_TRUE(isProtected(found, ".") || isProtected(found, "file")) << place;
  }
}

TEST_F(WorkspaceScanTest, ConfigurationOfTheUserNamesPrograms) {
  const char* const before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  ::setenv("HOME", dir.path().c_str(), 1);
  dir.write(".gitconfig", "[core]\n\thooksPath = hooks-of-all\n[alias]\n\tx = !~/project/run.sh\n");
  dir.write("project/hooks-of-all/pre-push", "x");
  dir.write("project/run.sh", "x");
  repository("project/.git", "[core]\n");
  const policy::ProtectedFiles files;
  const auto found = scanWorkspace(dir / "project", {.secrets = false, .protected_files = &files});
  before == nullptr ? ::unsetenv("HOME") : ::setenv("HOME", home.c_str(), 1);
  EXPECT_TRUE(isProtected(found, "hooks-of-all"));
  EXPECT_TRUE(isProtected(found, "run.sh"));
}

TEST(AbsolutePath, OtherUsersHomeIsResolvedAsGitDoes) {
  const std::string root = sys::homeOfUser("root");
  EXPECT_EQ(absolutePath("/base", "~root/hooks"), root + "/hooks");
  EXPECT_EQ(absolutePath("/base", "~root"), root);
  EXPECT_EQ(absolutePath("/base", "~no such user/hooks"), std::nullopt);
  EXPECT_EQ(absolutePath("/base", "hooks"), "/base/hooks");
}

TEST_F(WorkspaceScanTest, ConfigurationsThatAreTooLargeExhaustTheSearch) {
  const policy::ProtectedFiles files;
  repository(".git", "[core]\n");
  EXPECT_FALSE(scan({.protected_files = &files}).exhausted);
  std::string many = "[alias]\n";
  for (int i = 0; i < 5000; ++i) many += "x = !t/" + std::to_string(i) + "\n";
  for (const std::string& config : {std::string(2 << 20, '#'), many}) {
    dir.write(".git/config", config);
    EXPECT_TRUE(scan({.secrets = false, .protected_files = &files}).exhausted);
  }
}

TEST_F(WorkspaceScanTest, CacheSeesNewFilesAndContent) {
  ScanCache cache;
  dir.write("a/server_key", "not yet");
  EXPECT_TRUE(scan({}, &cache).secrets.empty());
  dir.write("a/server_key", kKey);
  EXPECT_EQ(scan({}, &cache).secrets, (std::vector<std::string>{"a/server_key"}));
  dir.write("a/.env.production", "x");
  EXPECT_EQ(scan({}, &cache).secrets, (std::vector<std::string>{"a/.env.production", "a/server_key"}));
  std::filesystem::remove_all(dir / "a");
  EXPECT_TRUE(scan({}, &cache).secrets.empty());
  EXPECT_FALSE(cache.index.paths().contains("a"));
}

}  // namespace
}  // namespace caisson::host
