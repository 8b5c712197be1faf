// Size-limited directories on disk: usable like those in memory, limited, private and removed in every case.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "functional/sandbox.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

using std::chrono::seconds;

class DiskDirectories : public SandboxTest {
 protected:
  [[nodiscard]] RunOptions how() const {
    RunOptions options;
    options.env["CAISSON_HOME"] = home.path();
    options.cwd = workspace.path();
    return options;
  }
  /// A policy with /tmp and the home on disk.
  [[nodiscard]] std::string onDisk(const std::string& tmp = "size = \"64M\"\ninodes = 1000\nexec = true\n",
                                   const std::string& more = "", const std::string& store = "disk") const {
    const std::string stored = "store = \"" + store + "\"\n";
    return settings.write("policy.toml", "extends = \"bash\"\n" + more + "[[filesystem.tmpfs]]\npath = \"/tmp\"\n" +
                                             stored + tmp + "[[filesystem.tmpfs]]\npath = \"/home/sandbox\"\n" +
                                             stored + "size = \"64M\"\ninodes = 1000\nexec = false\n");
  }
  [[nodiscard]] RunOutput on(const std::string& policy, const std::string& text,
                             std::vector<std::string> options = {}) const {
    options.insert(options.end(), {"--policy", policy});
    return script(text, options, how());
  }
  [[nodiscard]] std::string stores() const { return runProgram({"ls", "-A", home / "runs"}).out; }

  const TempDir home, settings;
};

TEST_F(DiskDirectories, AreMountedWithTheirOwnModeAndFlags) {
  const RunOutput output = on(onDisk(),
                              "stat -c '%a %U' /tmp /home/sandbox; cp /bin/true /tmp/t; cp /bin/true ~/t; "
                              "/tmp/t && echo runs; ~/t || echo refused; df -T /tmp | tail -n 1 | grep -c tmpfs; "
                              "grep -E ' (/tmp|/home/sandbox) ' /proc/self/mounts | grep -c nosuid,nodev");
  EXPECT_EQ(output.out, "1777 sandbox\n700 sandbox\nruns\nrefused\n0\n2\n") << output.describe();
}

TEST_F(DiskDirectories, DoNotCountAsMemory) {
  // As a tmpfs this would exceed the memory limit.
  const std::string policy = onDisk("size = \"400M\"\ninodes = 1000\n", "[resources]\nmemory = \"64M\"\n");
  const RunOutput output =
      on(policy, "head -c 200M /dev/zero > /tmp/large && sync /tmp/large && stat -c %s /tmp/large");
  EXPECT_EQ(output.out, "209715200\n") << output.describe();
}

TEST_F(DiskDirectories, AreRemovedAtTheEnd) {
  const Canary canary(workspace / "canary");
  const RunOutput output = on(
      onDisk(),
      "cd /tmp && mkdir -p a/b closed && touch closed/file && chmod 000 closed && ln -s / root && ln -s /proc/self/cwd "
      "cwd && ln -s " +
          canary.path() + " canary && mkfifo fifo && echo x > one && ln one two && " +
          "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/tmp/socket\")'; chmod 000 /tmp ~");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(stores(), "");
  EXPECT_TRUE(canary.untouched());
}

TEST_F(DiskDirectories, DeepTreeIsRemovedAtTheEnd) {
  // Far from the limits: until such a tree has been counted, all that the file system loses meanwhile is held against
  // it.
  const RunOutput output =
      on(onDisk("size = \"4G\"\ninodes = 500000\n"),
         "cd /tmp && python3 -c 'import os\nfor i in range(3000): os.mkdir(\"d\"); os.chdir(\"d\")'");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(stores(), "");
}

TEST_F(DiskDirectories, OfAKilledCaissonAreRemovedByTheNextRun) {
  const std::string policy = onDisk();
  {
    BackgroundProgram killed(
        {caissonBinary(), "run", "-q", "--policy", policy, "--", "sh", "-c",
         "mkdir -m 000 /tmp/closed; touch /tmp/file; echo ready > /workspace/ready; exec sleep 600"},
        how());
    ASSERT_TRUE(
        eventually([&] { return runProgram({"find", home / "runs", "-name", "file"}).out != ""; }, seconds(20)));
    killed.signal(SIGKILL);
    ASSERT_TRUE(killed.wait(seconds(10)));
  }
  EXPECT_NE(stores(), "") << "no process has removed it yet";
  const RunOutput next = on(policy, "ls -A /tmp");
  EXPECT_EQ(next.out, "") << next.describe();
  EXPECT_EQ(stores(), "");
}

TEST_F(DiskDirectories, OfAnotherSandboxCannotBeReached) {
  const std::string policy = onDisk();
  const Canary canary(workspace / "not-this-one");
  BackgroundProgram first(
      {caissonBinary(), "run", "-q", "--policy", policy, "--", "sh", "-c", "echo private > /tmp/first; exec sleep 600"},
      how());
  ASSERT_TRUE(eventually([&] { return runProgram({"find", home / "runs", "-name", "first"}).out != ""; }, seconds(20)));
  const std::string path = runProgram({"find", home / "runs", "-name", "first"}).out;
  const RunOutput second = on(policy, "ls -A /tmp; cat '" + path.substr(0, path.size() - 1) +
                                          "'; ls -d /tmp/.. /tmp/../.. ; cat /tmp/../directory-0/first");
  EXPECT_FALSE(contains(second.out, "private")) << second.describe();
  EXPECT_FALSE(contains(second.out, "first\n")) << second.describe();
}

TEST_F(DiskDirectories, FullOneEndsTheRunAndIsNamed) {
  const RunOutput output =
      on(onDisk(), "i=0; while :; do i=$((i+1)); head -c 8M /dev/zero > /tmp/$i; done", {"--json"});
  const nlohmann::json result = output.json();
  ASSERT_FALSE(result.is_discarded()) << output.describe();
  EXPECT_EQ(result["outcome"], "limit");
  EXPECT_EQ(result["limit"], "disk");
  const std::string text = result.dump();
  EXPECT_TRUE(contains(text, "more than 64 MiB were written to /tmp (its size in filesystem.tmpfs)")) << text;
  EXPECT_TRUE(contains(result["denials"].dump(), "/tmp")) << text;
  EXPECT_TRUE(contains(result["layers"]["disk_quota"], "watched: /tmp 64 MiB, /home/sandbox 64 MiB")) << text;
  EXPECT_EQ(stores(), "");
}

TEST_F(DiskDirectories, TooManyFilesInOneEndTheRun) {
  const RunOutput output =
      on(onDisk(), "i=0; while :; do i=$((i+1)); : > /tmp/$i; done", {"--json", "--timeout", "60s"});
  const nlohmann::json result = output.json();
  ASSERT_FALSE(result.is_discarded()) << output.describe();
  EXPECT_EQ(result["limit"], "disk") << result.dump();
  EXPECT_TRUE(contains(result.dump(), "more than 1000 files were made in /tmp (its inodes in filesystem.tmpfs)"))
      << result.dump();
}

TEST_F(DiskDirectories, AllTogetherAreLimitedByTheTotal) {
  const std::string policy = onDisk("size = \"64M\"\n", "[filesystem]\nmax_total_size = \"48M\"\n");
  const RunOutput output = on(policy, "head -c 30M /dev/zero > /tmp/a; head -c 30M /dev/zero > ~/b; sleep 600",
                              {"--json", "--timeout", "60s"});
  const nlohmann::json result = output.json();
  ASSERT_FALSE(result.is_discarded()) << output.describe();
  EXPECT_EQ(result["limit"], "disk") << result.dump();
  EXPECT_TRUE(contains(result.dump(), "more than 48 MiB were written (filesystem.max_total_size)")) << result.dump();
}

TEST_F(DiskDirectories, AreRefusedOrInMemoryWhereTheStateDirectoryIsReadOnly) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can write to every directory";
  const TempDir closed;
  RunOptions options = how();
  options.env["CAISSON_HOME"] = closed.path();
  // The log must be writable; only the place of the stores is not.
  ASSERT_TRUE(exists(closed.makeDir("runs", 0555)));
  const RunOutput refused = script("true", {"--policy", onDisk()}, options);
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "cannot be kept on disk")) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "CAISSON_HOME")) << refused.describe();
  const std::string prefer = onDisk("size = \"64M\"\ninodes = 1000\n", "", "prefer_disk");
  const RunOutput in_memory = script("df -T /tmp | tail -n 1 | grep -c tmpfs", {"--json", "--policy", prefer}, options);
  EXPECT_EQ(in_memory.json()["stdout"], "1\n") << in_memory.describe();
  EXPECT_TRUE(contains(in_memory.json()["warnings"].dump(), "kept in memory")) << in_memory.describe();
  ::chmod((closed / "runs").c_str(), 0755);
}

TEST_F(DiskDirectories, WorkAtLevelProcess) {
  const RunOutput output =
      on(onDisk(), "echo x > /tmp/f && cat /tmp/f && df -T /tmp | tail -n 1 | grep -c tmpfs", {"--level", "process"});
  EXPECT_EQ(output.out, "x\n0\n") << output.describe();
  EXPECT_EQ(stores(), "");
}

TEST_F(DiskDirectories, AreShownByPlanAndExplain) {
  const std::string policy = onDisk();
  const RunOutput plan = runCaisson({"plan", "--policy", policy, "--", "true"}, how());
  EXPECT_TRUE(contains(plan.out, "directory  /tmp (65536 KiB, 1000 inodes, on disk)")) << plan.describe();
  EXPECT_EQ(stores(), "") << "plan made a store";
  const RunOutput explain = runCaisson({"policy", "explain", policy}, how());
  EXPECT_TRUE(contains(explain.out, "/tmp (64 MiB, 1000 inodes, exec, disk)")) << explain.describe();
}

TEST_F(DiskDirectories, CannotBeWriteOnlyOrReadOnly) {
  const std::string policy =
      settings.write("logs.toml", "[[filesystem.tmpfs]]\npath = \"/logs\"\naccess = \"wo\"\nstore = \"disk\"\n");
  const RunOutput output = runCaisson({"policy", "check", policy}, how());
  EXPECT_NE(output.exit_status, 0);
  EXPECT_TRUE(contains(output.out + output.err, "filesystem.tmpfs[0].store")) << output.describe();
}

class SessionDiskDirectories : public SandboxTest {
 protected:
  static constexpr const char* kPolicy =
      "[[filesystem.tmpfs]]\npath = \"/tmp\"\nsize = \"64M\"\ninodes = 1000\nstore = \"disk\"\n"
      "[[filesystem.tmpfs]]\npath = \"/home/sandbox\"\nsize = \"64M\"\ninodes = 1000\nstore = \"disk\"\n";
  SessionCli cli;
};

TEST_F(SessionDiskDirectories, SurviveCheckpointAndRestore) {
  const std::string id = cli.create(kPolicy);
  EXPECT_EQ(cli.script(id, "echo t > /tmp/t; echo h > ~/h; echo 1 > file").exit_status, 0);
  ASSERT_EQ(cli.caisson({"session", "checkpoint", id, "one"}).exit_status, 0);
  EXPECT_EQ(cli.script(id, "cat /tmp/t ~/h; echo 2 > file").out, "t\nh\n");
  ASSERT_EQ(cli.caisson({"session", "restore", id, "one"}).exit_status, 0);
  EXPECT_EQ(cli.script(id, "cat /tmp/t ~/h file").out, "t\nh\n1\n");
}

TEST_F(SessionDiskDirectories, BelongToOneSessionAndGoWithIt) {
  const std::string id = cli.create(kPolicy);
  ASSERT_EQ(cli.script(id, "echo secret > /tmp/t; mkdir -m 000 /tmp/closed; chmod 000 ~").exit_status, 0);
  const std::string other = cli.create(kPolicy);
  EXPECT_EQ(cli.script(other, "ls -A /tmp ~").out, "/home/sandbox:\n\n/tmp:\n");
  EXPECT_EQ(cli.caisson({"session", "destroy", id}).exit_status, 0);
  EXPECT_EQ(runProgram({"find", cli.home / "sessions", "-name", "closed"}).out, "");
  EXPECT_FALSE(exists(cli.home / "sessions/" + id));
}

TEST_F(SessionDiskDirectories, FullOneCanBeEmptied) {
  const std::string id = cli.create(kPolicy);
  const RunOutput full =
      cli.script(id, "i=0; while :; do i=$((i+1)); head -c 8M /dev/zero > /tmp/$i; done", {"--json"});
  const nlohmann::json result = full.json();
  ASSERT_FALSE(result.is_discarded()) << full.describe();
  EXPECT_EQ(result["limit"], "disk") << result.dump();
  EXPECT_TRUE(contains(result.dump(), "written to /tmp")) << result.dump();
  const RunOutput emptied = cli.script(id, "sleep 0.3; rm /tmp/*; sleep 0.3; echo emptied");
  EXPECT_EQ(emptied.out, "emptied\n") << emptied.describe();
  EXPECT_EQ(cli.script(id, "head -c 8M /dev/zero > /tmp/new; sleep 0.3; echo fits").out, "fits\n");
}

TEST_F(SessionDiskDirectories, ShortCommandsTogetherReachTheLimit) {
  const std::string id = cli.create(kPolicy);
  int commands = 0;
  bool ended = false;
  while (!ended && ++commands < 20) {
    const RunOutput one =
        cli.exec(id, {"dd", "if=/dev/zero", "of=/tmp/" + std::to_string(commands), "bs=16M", "count=1", "status=none"},
                 {"--json"});
    ended = one.json()["limit"] == "disk";
  }
  EXPECT_TRUE(ended) << "320 MiB were written to a directory of 64 MiB";
  EXPECT_LE(commands, 8);
}

TEST_F(SessionDiskDirectories, MountPointBehindALinkIsRefused) {
  // The payload replaces a directory above a mount point by a link to the host: nothing may be made there.
  const TempDir shown;
  shown.openToAll();
  const TempDir canary;
  canary.openToAll();
  const std::string id =
      cli.create(std::string(kPolicy) + "[[filesystem.tmpfs]]\npath = \"/home/sandbox/a/inner\"\nsize = \"1M\"\n");
  ASSERT_EQ(cli.script(id, "mv ~/a ~/b && ln -s " + canary.path() + " ~/a").exit_status, 0);
  ASSERT_EQ(cli.caisson({"session", "checkpoint", id}).exit_status, 0);
  const RunOutput next = cli.script(id, "echo started");
  EXPECT_NE(next.out, "started\n") << next.describe();
  EXPECT_EQ(runProgram({"ls", "-A", canary.path()}).out, "") << "a directory was made on the host";
}

TEST_F(SessionDiskDirectories, AreDiscardedAfterAnEscapeAttempt) {
  const std::string id = cli.create(kPolicy);
  ASSERT_EQ(cli.script(id, "echo planted > ~/.profile").exit_status, 0);
#if defined(__x86_64__)
  const std::string bpf = "321";  // CRITICAL: one call kills the sandbox
#else
  const std::string bpf = "280";
#endif
  const RunOutput attempt =
      cli.exec(id, {"python3", "-c", "import ctypes; ctypes.CDLL(None).syscall(" + bpf + ", 99, 0, 0)"}, {"--json"});
  EXPECT_EQ(attempt.json()["outcome"], "denied") << attempt.describe();
  EXPECT_EQ(cli.script(id, "ls -A ~").out, "");
}

}  // namespace
}  // namespace caisson::test
