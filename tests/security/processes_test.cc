// The host's processes are unreachable, and no process of the payload outlives the run.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <regex>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// The file grows while the daemon that writes to it lives.
bool stillGrows(const std::string& path) {
  const std::size_t before = readFile(path).size();
  sleepFor(std::chrono::milliseconds(400));
  return readFile(path).size() > before;
}

class Daemon : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(Daemon, DiesWithTheRun) {
  CONFORMS("R-PROCESS-2");
  const TempDir directory;
  // Without namespaces root's payloads run as another user of the host.
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  const std::string log = directory / "log";
  std::string inside = "/workspace/log";
  for (const std::string& option : GetParam()) {
    if (option == "process" || option == "landlock") inside = log;  // no private root: the host's paths
  }
  const RunOutput output =
      inSandbox({.verb = {"survive", inside}, .workspace = directory.path() + ":rw", .options = GetParam()});
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  ASSERT_GT(readFile(log).size(), 0U) << "the daemon never ran";
  EXPECT_FALSE(stillGrows(log));
}

INSTANTIATE_TEST_SUITE_P(AtEveryLevel, Daemon,
                         testing::Values(std::vector<std::string>{}, std::vector<std::string>{"--level", "process"},
                                         std::vector<std::string>{"--level", "process", "--tier", "landlock"}),
                         [](const auto& test) {
                           return test.param.empty() ? "full" : test.param.size() == 2 ? "process" : "landlock_tier";
                         });

/// Without protection the same daemon survives; it exits after twenty seconds, or when its file is gone.
TEST(Daemon, SurvivesUnprotected) {
  if (!mayWeaken()) return;
  const TempDir directory;
  const std::string log = directory / "log";
  ASSERT_TRUE(succeeded(unprotected({.verb = {"survive", log}})));
  EXPECT_TRUE(stillGrows(log));
}

TEST(Daemon, DiesWhenCaissonIsKilled) {
  CONFORMS("R-PROCESS-2");
  const TempDir directory;
  {
    BackgroundProgram program({caissonBinary(), "run", "--quiet", "--workspace", directory.path() + ":rw", "--ro",
                               payloadPath(), "--", "/bin/sh", "-c",
                               payloadPath() + " survive /workspace/log; sleep 30"});
    ASSERT_TRUE(eventually([&] { return !readFile(directory / "log").empty(); }));
    program.signal(SIGKILL);
    ASSERT_TRUE(program.wait(std::chrono::seconds(5)));
  }
  sleepFor(std::chrono::milliseconds(300));
  EXPECT_FALSE(stillGrows(directory / "log"));
}

TEST(Daemon, DiesAtTheTimeout) {
  const TempDir directory;
  const RunOutput output = runCaisson({"run", "--quiet", "--timeout", "1s", "--workspace", directory.path() + ":rw",
                                       "--ro", payloadPath(), "--", "/bin/sh", "-c",
                                       "trap '' TERM HUP INT; " + payloadPath() + " survive /workspace/log; sleep 30"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(15));
  EXPECT_FALSE(stillGrows(directory / "log"));
}

TEST(HostProcesses, AreInvisible) {
  CONFORMS("R-PROCESS-1", "R-FILES-3");
  const Attack attack{.verb = {"list-processes"}};
  const std::string own = " " + std::to_string(getpid());
  const RunOutput output = inSandbox(attack);
  EXPECT_TRUE(std::regex_match(output.out, std::regex("done: ([2-9])\n"))) << output.out;  // only itself
  // Without a pid namespace no new /proc can be mounted: the host's is used.
  if (!mayWeaken()) return;
  EXPECT_NE(weakened("pid-namespace,own-root,self-test", attack).out.find(own), std::string::npos);
}

TEST(HostProcesses, CannotBeSignalled) {
  CONFORMS("R-PROCESS-1");
  BackgroundProgram victim({"sleep", "60"});
  const std::string pid = std::to_string(victim.pid());
  const auto number = std::to_string(SYS_kill);
  const Attack attack{.verb = {"call", number, pid, "0"}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  // Landlock's scoping blocks signals too.
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("pid-namespace,own-root,landlock,self-test", attack)));
}

/// Tracing and reading the memory of a process of the same user, at both levels.
TEST(HostProcesses, CannotBeTraced) {
  CONFORMS("R-PROCESS-1");
  BackgroundProgram victim({"sleep", "60"});
  const std::string pid = std::to_string(victim.pid());
  for (const char* verb : {"trace", "read-memory"}) {
    const Attack attack{.verb = {verb, pid}};
    EXPECT_TRUE(contained(inSandbox(attack))) << verb;
    EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack)))) << verb;
    if (!mayWeaken()) return;
    // The kernel itself refuses it from another user namespace, which no plan can do without.
    const std::string yama = readFile("/proc/sys/kernel/yama/ptrace_scope");
    if (yama.empty() || yama == "0\n") {
      EXPECT_TRUE(succeeded(unprotected(attack))) << verb;
    }
  }
}

TEST(HostProcesses, CannotBeSignalledAtLevelProcess) {
  CONFORMS("R-PROCESS-1");
  BackgroundProgram victim({"sleep", "60"});
  const Attack attack = atLevelProcess({.verb = {"call", std::to_string(SYS_kill), std::to_string(victim.pid()), "0"}});
  EXPECT_TRUE(contained(inSandbox(attack)));
  EXPECT_TRUE(
      std::regex_match(inSandbox(atLevelProcess({.verb = {"list-processes"}})).out, std::regex("done: ([2-9])\n")));
}

/// Compared with the host's own: a namespace that the plan does not ask for is the host's.
TEST(Namespace, IsNotTheHosts) {
  CONFORMS("R-LEVEL-2");
  const TempDir state;
  const RunOptions how{.env = {{"CAISSON_HOME", state.path()}}};
  const std::pair<const char*, const char*> spaces[] = {{"ipc", "ipc-namespace"},
                                                        {"uts", "uts-namespace"},
                                                        {"cgroup", "cgroup-namespace"},
                                                        {"net", "network-namespace,landlock,self-test"},
                                                        {"pid", "pid-namespace,own-root,self-test"},
                                                        {"mnt", "own-root,self-test"}};
  for (const auto& [name, weakness] : spaces) {
    const std::string link = std::string("/proc/self/ns/") + name;
    const RunOutput here = runProgram({"readlink", link});
    const RunOutput inside = runCaisson({"run", "--quiet", "--workspace", ":none", "--", "readlink", link}, how);
    EXPECT_TRUE(inside.out.starts_with(std::string(name) + ":[")) << inside.describe();
    EXPECT_NE(inside.out, here.out);
    if (runsAsRoot()) continue;
    EXPECT_EQ(runProgram({weakenedPath(), weakness, "--workspace", ":none", "--", "readlink", link}, how).out,
              here.out);
  }
}

TEST(Processes, AreLimitedInNumber) {
  CONFORMS("R-PROCESS-4");
  const Attack attack{.verb = {"count-forks", "400"}, .options = {"--profile", "bash"}};
  const RunOutput output = inSandbox(attack);
  EXPECT_EQ(output.exit_status, 1) << output.describe();
  EXPECT_NE(output.out.find("EAGAIN"), std::string::npos) << output.describe();
  if (!mayWeaken()) return;
  EXPECT_NE(weakened("limits,cgroup", attack).out.find("started 400"), std::string::npos);
}

/// An affinity that the payload can widen again limits nothing.
TEST(CpuAffinity, CannotBeWidened) {
  CONFORMS("R-LIMIT-3");
  const TempDir directory;
  const std::string policy = directory.write(
      "policy.toml", "format_version = 1\nname = \"pinned\"\nextends = \"bash\"\n[resources]\ncpu_affinity = [0]\n");
  requireOrSkip(sysconf(_SC_NPROCESSORS_ONLN) > 1, "one processor only");
  directory.openToAll();
  // Where the cgroup controls processors, it keeps them from being widened too.
  expectOnlyStoppedBy("allow:sched_setaffinity,cgroup", {.verb = {"widen-affinity"}, .options = {"--policy", policy}});
}

TEST(CpuTime, IsLimited) {
  CONFORMS("R-LIMIT-3");
  const TempDir directory;
  const std::string policy = directory.write("policy.toml", "[resources]\ncpu_seconds = 0.3\n");
  directory.openToAll();
  const Attack attack{.verb = {"burn-tree", "0.8"}, .options = {"--policy", policy}};
  const RunOutput output = inSandbox(attack);
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out.find("done"), std::string::npos) << output.describe();
  if (!mayWeaken()) return;
  EXPECT_EQ(weakened("cpu-limit", attack).exit_status, 0);
}

/// After its one exec a payload under `allow_exec = false` starts no program, by path or from memory.
TEST(SingleExec, HoldsAgainstASecondProgram) {
  CONFORMS("R-PROCESS-6");
  const Attack attack{.verb = {"exec", payloadPath(), "list-descriptors"}, .options = {"--profile", "strict"}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  EXPECT_NE(inSandbox(attack).out.find("execve: EPERM"), std::string::npos);
  if (!mayWeaken()) return;
  EXPECT_EQ(weakened("allow:execve", attack).out, "refused: fcntl: EBADF\n") << "the second program did not run";
}

/// The short list of calls and the small limits of the profile are what stops these.
TEST(StrictProfile, AllowsNoSocketsAndLittleMemory) {
  CONFORMS("R-POLICY-12");
  expectOnlyStoppedBy("allow:socket", {.verb = {"socket", "1", "1", "0"}, .options = {"--profile", "strict"}});
  const Attack memory{.verb = {"take-anonymous", "80"}, .options = {"--profile", "strict"}};
  EXPECT_NE(inSandbox(memory).exit_status, 0);
  if (!mayWeaken()) return;
  EXPECT_EQ(weakened("all-limits", memory).exit_status, 0);
}

/// With `allow_fork = false`, threads are still allowed.
TEST(SingleProcess, HoldsAgainstAFork) {
  CONFORMS("R-PROCESS-5");
  const TempDir directory;
  const std::string policy = directory.write("policy.toml", "[process]\nallow_fork = false\n");
  directory.openToAll();
  const Attack attack{.verb = {"count-forks", "3"}, .options = {"--policy", policy}};
  const RunOutput output = inSandbox(attack);
  EXPECT_EQ(output.exit_status, 1) << output.describe();
  EXPECT_NE(output.out.find("refused: fork: EPERM"), std::string::npos) << output.describe();
  const RunOutput threads = inSandbox({.verb = {"take-threads", "3"}, .options = {"--policy", policy}});
  EXPECT_EQ(threads.out, "done: 3\n") << threads.describe();
  if (!mayWeaken()) return;
  EXPECT_NE(weakened("allow:clone,allow:fork,allow:vfork", attack).out.find("started 3"), std::string::npos);
}

}  // namespace
}  // namespace caisson::test
