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

  /// The id of a new session.
  [[nodiscard]] std::string createSession(std::vector<std::string> options) const {
    options.insert(options.begin(), {"session", "create"});
    const RunOutput made = runCaisson(options, how_);
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    return made.out.substr(0, made.out.find('\n'));
  }

  /// The files of this name in all caches, as the host finds them.
  [[nodiscard]] std::string keptFiles(const std::string& name) const {
    return onHost("find " + state_.path() + "/caches -name " + name).out;
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

TEST_F(CacheDirectories, OfARunReachNoSessionAndNoAgent) {
  CONFORMS("R-FILES-21");
  workspace.makeDir(".git");  // `agent exec` finds the project by it
  const std::string session = createSession({"--workspace", workspace.path()});
  const auto inSession = [&](const std::string& script) {
    return runCaisson({"session", "exec", session, "--", "sh", "-c", script}, how_);
  };
  const auto inAgent = [&](const std::string& script) {
    return runCaisson({"agent", "exec", "--project", workspace.path(), "--", script}, how_);
  };
  const std::string write = "mkdir -p /cache/cargo && echo evil > /cache/cargo/config.toml && echo evil > /cache/file";
  for (int round = 0; round < 2; ++round) {  // the second time the others exist
    EXPECT_EQ(in(workspace, write).exit_status, 0);
    for (const RunOutput& seen : {inSession("ls -A /cache"), inAgent("ls -A /cache")}) {
      EXPECT_EQ(seen.exit_status, 0) << seen.describe();
      EXPECT_EQ(seen.out, "") << seen.describe();
    }
  }
  EXPECT_EQ(inAgent("echo agent > /cache/agent").exit_status, 0);
  EXPECT_EQ(inSession("echo session > /cache/session").exit_status, 0);
  EXPECT_EQ(inAgent("ls /cache").out, "agent\n");
  EXPECT_EQ(inSession("ls /cache").out, "session\n");
  EXPECT_EQ(in(workspace, "ls -A /cache/agent /cache/session; cat /cache/file").out, "evil\n");
  EXPECT_EQ(runCaisson({"session", "destroy", session}, how_).exit_status, 0);
  const std::string next = createSession({"--workspace", workspace.path()});
  const RunOutput kept = runCaisson({"session", "exec", next, "--", "cat", "/cache/session"}, how_);
  EXPECT_EQ(kept.out, "session\n") << "kept for the next session of the directory: " << kept.describe();
  EXPECT_EQ(runCaisson({"clean", "--all"}, how_).exit_status, 0);
}

TEST_F(CacheDirectories, KeepNoConfiguration) {
  const std::string plant =
      "cd /cache && mkdir -p cargo/bin cargo/registry/src npm/_cacache pip && echo x > cargo/config.toml && "
      "echo x > cargo/config && echo x > cargo/bin/cargo && echo x > cargo/registry/src/kept && echo x > npm/.npmrc && "
      "echo x > pip/pip.conf && mkdir chosen && echo x > chosen/config.toml && ln -s /cache/chosen tool";
  const std::string look = "cd /cache && find . -type f -o -type l | sort";
  EXPECT_EQ(in(workspace, plant).exit_status, 0);
  EXPECT_EQ(keptFiles("config.toml"), "") << "it is gone when the run has ended";
  const RunOutput next = in(workspace, look);
  EXPECT_EQ(next.out, "./cargo/registry/src/kept\n") << next.describe();
}

TEST_F(CacheDirectories, KeepNoConfigurationOfAKilledRun) {
  const RunOutput killed = onHost("$CAISSON run -q --workspace " + workspace.path() +
                                      " -- sh -c 'mkdir -p /cache/cargo; echo x > /cache/cargo/config.toml; "
                                      "echo x > /cache/cargo/kept; echo ready; sleep 60' > out & "
                                      "until grep -q ready out; do :; done; kill -9 $!; wait $!",
                                  how_);
  EXPECT_NE(keptFiles("config.toml"), "") << "the test's premise: " << killed.describe();
  const RunOutput next = in(workspace, "ls -A /cache/cargo");
  EXPECT_EQ(next.out, "kept\n") << next.describe();
}

TEST_F(CacheDirectories, KeepGitRepositoriesWithoutHooksAndCommands) {
  const std::string make =
      "cd /cache; for r in plain hooked commanded; do d=go-mod/cache/vcs/$r; mkdir -p $d/objects $d/refs; "
      "echo 'ref: refs/heads/main' > $d/HEAD; "
      "printf '[core]\n\tbare = true\n[remote \"origin\"]\n\turl = https://example.org/r\n' > $d/config; done; "
      "mkdir go-mod/cache/vcs/hooked/hooks; echo x > go-mod/cache/vcs/hooked/hooks/reference-transaction; "
      "printf '\tuploadpack = touch /workspace/x\n' >> go-mod/cache/vcs/commanded/config";
  EXPECT_EQ(in(workspace, make).exit_status, 0);
  const RunOutput next = in(workspace, "cd /cache/go-mod/cache/vcs && ls -d * */config */hooks");
  EXPECT_EQ(next.out, "hooked\nhooked/config\nplain\nplain/config\n") << next.describe();
}

TEST_F(CacheDirectories, OfASessionWithoutAWorkspaceGoWithIt) {
  const std::string session = createSession({"--workspace", workspace.path() + ":none"});
  const RunOutput wrote = runCaisson({"session", "exec", session, "--", "sh", "-c", "echo x > /cache/file"}, how_);
  EXPECT_EQ(wrote.exit_status, 0) << wrote.describe();
  EXPECT_EQ(runCaisson({"session", "destroy", session}, how_).exit_status, 0);
  EXPECT_EQ(onHost("ls -A " + state_.path() + "/caches 2>/dev/null").out, "");
}

}  // namespace
}  // namespace caisson::test
