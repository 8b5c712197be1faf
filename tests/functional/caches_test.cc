// Caches of package managers: kept for the next sandbox of the same workspace, and for no other.
#include <cstdlib>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class CacheDirectories : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    how_.env["CAISSON_HOME"] = state_.path();
  }

  [[nodiscard]] RunOutput in(const TempDir& directory, const std::string& script,
                             std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--workspace", directory.path()});
    return run(options, {"sh", "-c", script}, how_);
  }

  /// A policy with a cache of 100 MiB and 500 files.
  [[nodiscard]] std::string smallCache() const {
    workspace.openToAll();
    return workspace.write("p.toml",
                           "extends = 'bash'\n[[filesystem.tmpfs]]\npath = '/cache'\nstore = 'disk'\nsize = '100M'\n"
                           "inodes = 500\ncache = 'workspace'\n");
  }

  const TempDir state_, other_;
  RunOptions how_;
};

TEST_F(CacheDirectories, OutliveARunOfTheSameWorkspaceOnly) {
  CONFORMS("R-FILES-21");
  const RunOutput first =
      in(workspace, "echo one > /cache/file && mkdir -m 0 /cache/closed && ln -s /etc/passwd /cache/link");
  EXPECT_EQ(first.exit_status, 0) << first.describe();
  const RunOutput second = in(workspace, "cat /cache/file && echo two > /cache/file && cat /cache/file");
  EXPECT_EQ(second.out, "one\ntwo\n") << "written again, under whatever id: " << second.describe();
  const RunOutput other = in(other_, "ls /cache");
  EXPECT_EQ(other.out, "") << other.describe();
  const RunOutput bash = in(workspace, "ls /cache", {"--profile", "bash"});
  EXPECT_NE(bash.exit_status, 0) << "only where the policy has one: " << bash.describe();
}

TEST_F(CacheDirectories, AreUsedByPackageManagers) {
  const RunOutput variables = in(workspace, "echo $XDG_CACHE_HOME $npm_config_cache $CARGO_HOME $GOMODCACHE");
  EXPECT_EQ(variables.out, "/cache /cache/npm /cache/cargo /cache/go-mod\n") << variables.describe();
}

TEST_F(CacheDirectories, AreSharedByNameOnlyIfThePolicyNamesThem) {
  const std::string policy = workspace.write(
      "p.toml",
      "extends = 'bash'\n[[filesystem.tmpfs]]\npath = '/cache'\nstore = 'disk'\nsize = '10M'\ncache = 'tools'\n");
  workspace.openToAll();
  EXPECT_EQ(in(workspace, "echo shared > /cache/file", {"--policy", policy}).exit_status, 0);
  EXPECT_EQ(in(other_, "cat /cache/file", {"--policy", policy}).out, "shared\n");
  EXPECT_NE(in(other_, "cat /cache/file").exit_status, 0);
}

TEST_F(CacheDirectories, HaveASizeAndAreEmptiedByClean) {
  CONFORMS("R-FILES-21");
  const std::string policy = workspace.write(
      "p.toml",
      "extends = 'bash'\n[[filesystem.tmpfs]]\npath = '/cache'\nstore = 'disk'\nsize = '10M'\ncache = 'workspace'\n");
  workspace.openToAll();
  const RunOutput full =
      in(workspace, "for i in 1 2 3 4; do head -c 8000000 /dev/zero > /cache/$i; sleep 0.3; done; echo all",
         {"--policy", policy, "--json"});
  EXPECT_EQ(full.json()["limit"], "disk") << full.describe();
  const RunOutput next = in(workspace, "ls /cache", {"--policy", policy});
  EXPECT_EQ(next.out, "") << "a full cache is emptied: " << next.describe();
  EXPECT_EQ(in(workspace, "echo x > /cache/file", {"--policy", policy}).exit_status, 0);
  EXPECT_EQ(runCaisson({"clean", "--all"}, how_).exit_status, 0);
  EXPECT_EQ(in(workspace, "ls /cache", {"--policy", policy}).out, "");
}

TEST_F(CacheDirectories, WithTooManyFilesIsEmptiedForTheNextRun) {
  const std::string policy = smallCache();
  const RunOutput full =
      in(workspace, "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); : > /cache/$i; done; sleep 5; echo not ended",
         {"--policy", policy, "--json"});
  EXPECT_EQ(full.json()["limit"], "disk") << full.describe();
  const RunOutput next = in(workspace, "ls /cache | wc -l; sleep 1", {"--policy", policy});
  EXPECT_EQ(next.out, "0\n") << "it would end every run: " << next.describe();
  EXPECT_EQ(next.exit_status, 0) << next.describe();
}

TEST_F(CacheDirectories, ClosedDirectoriesCountTowardsTheirSize) {
  const std::string policy = smallCache();
  for (const char* rest : {"sleep 1", ":"}) {
    for (int i = 0; i < 6; ++i) {
      const std::string name = "/cache/" + std::to_string(i);
      (void)in(workspace,
               "mkdir -p -m 0300 " + name + "; head -c 24000000 /dev/zero > " + name + "/f; " + std::string(rest),
               {"--policy", policy});
    }
    const RunOutput size = in(workspace, "chmod 0700 /cache/*; du -sm /cache | cut -f1", {"--policy", policy});
    EXPECT_LE(std::atoi(size.out.c_str()), 124)
        << "144 MB went to a cache of 100 MiB, with " << rest << size.describe();
  }
}

TEST_F(CacheDirectories, AreSharedWithSessionsOfTheWorkspace) {
  EXPECT_EQ(in(workspace, "echo run > /cache/file").exit_status, 0);
  const RunOutput made = runCaisson({"session", "create", "--workspace", workspace.path()}, how_);
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const RunOutput read = runCaisson({"session", "exec", id, "--", "cat", "/cache/file"}, how_);
  EXPECT_EQ(read.out, "run\n") << read.describe();
  EXPECT_EQ(runCaisson({"session", "destroy", id}, how_).exit_status, 0);
  EXPECT_EQ(in(workspace, "cat /cache/file").out, "run\n") << "a cache is not the session's";
}

}  // namespace
}  // namespace caisson::test
