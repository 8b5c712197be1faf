// The payload's identity, and what it can learn about the caller.
#include <pwd.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>

#include "security/attack.h"
#include "support/conforms.h"
#include "support/processes.h"

namespace caisson::test {
namespace {

/// The value of a line "Name: value" that the payload printed, with single blanks.
std::string field(const RunOutput& output, const std::string& name) {
  std::istringstream lines(output.out);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream words(line.substr(name.size() + 1));
    std::string value;
    for (std::string word; words >> word;) value += (value.empty() ? "" : " ") + word;
    return value;
  }
  return "absent";
}

constexpr const char* kCapabilitySets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};

class AtLevel : public testing::TestWithParam<const char*> {
 protected:
  static Attack here(Attack attack) {
    return std::string(GetParam()) == "process" ? atLevelProcess(std::move(attack)) : attack;
  }
};

TEST_P(AtLevel, NoCapabilityIsLeftInAnySet) {
  CONFORMS("R-LEVEL-4");
  const Attack attack = here({.verb = {"describe-self"}});
  const RunOutput output = inSandbox(attack);
  for (const char* set : kCapabilitySets) EXPECT_EQ(field(output, set), "0000000000000000") << set << output.describe();
  EXPECT_EQ(field(output, "SecureBits"), "207") << "root's special rights are off, locked";
  if (!mayWeaken()) return;
  EXPECT_NE(field(weakened("capabilities,self-test", attack), "CapBnd"), "0000000000000000");
}

TEST_P(AtLevel, PrivilegesCannotGrow) {
  CONFORMS("R-LEVEL-14");
  const Attack attack = here({.verb = {"describe-self"}});
  EXPECT_EQ(field(inSandbox(attack), "NoNewPrivs"), "1");
  EXPECT_EQ(field(inSandbox(attack), "Seccomp"), "2");
  if (!mayWeaken()) return;
  // Filter and Landlock need no_new_privs or a capability, so those stay enabled here.
  EXPECT_EQ(field(weakened("no-new-privileges,capabilities,self-test", attack), "NoNewPrivs"), "0");
  EXPECT_EQ(field(weakened("seccomp", attack), "Seccomp"), "0");
}

TEST_P(AtLevel, ThePayloadIsNotRootAndCannotBecomeIt) {
  CONFORMS("R-LEVEL-14");
  const Attack attack = here({.verb = {"describe-self"}});
  const RunOutput output = inSandbox(attack);
  EXPECT_EQ(field(output, "Uid"), "1000 1000 1000 1000");
  EXPECT_EQ(field(output, "Gid"), "1000 1000 1000 1000");
  std::istringstream map(field(output, "UidMap"));
  unsigned inside = 0, outside = 0, count = 0;
  map >> inside >> outside >> count;
  EXPECT_EQ(inside, 1000U);
  EXPECT_NE(outside, 0U) << "host uid 0 is mapped into the sandbox";
  EXPECT_EQ(count, 1U);
  EXPECT_TRUE(contained(inSandbox(here({.verb = {"become-root"}}))));
  if (!runsAsRoot()) return;  // an ordinary user cannot drop supplementary groups; caisson warns about them
  EXPECT_EQ(field(output, "Groups"), "");
}

TEST_P(AtLevel, CallersEnvironmentIsCleared) {
  CONFORMS("R-PROCESS-14");
  const std::string secret = uniqueWord("secret");
  Attack attack = here({.verb = {"environment"}});
  for (const char* name : {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
                           "DISPLAY", "LD_AUDIT_LATER", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP",
                           "JAVA_TOOL_OPTIONS", "PERL5OPT", "GCONV_PATH", "LD_LIBRARY_PATH"}) {
    attack.how.env[name] = secret;
  }
  const RunOutput output = inSandbox(attack);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out.find(secret), std::string::npos) << output.out;
  if (!mayWeaken()) return;
  EXPECT_NE(weakened("clean-environment", attack).out.find(secret), std::string::npos);
}

TEST_P(AtLevel, HostNameIsHidden) {
  CONFORMS("R-LEVEL-6");
  const Attack attack = here({.verb = {"host-name"}});
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  EXPECT_TRUE(inSandbox(attack).out.starts_with("done: sandbox ")) << inSandbox(attack).describe();
  if (!mayWeaken()) return;
  EXPECT_TRUE(weakened("uts-namespace", attack).out.starts_with(std::string("done: ") + name));
}

/// The files of the host are there at level process; those that name users are covered.
TEST(HostUsers, AreHidden) {
  CONFORMS("R-LEVEL-6");
  const passwd* user = getpwuid(geteuid());
  requireOrSkip(user != nullptr, "this user has no name");
  const std::string entry = std::string(user->pw_name) + ":x:" + std::to_string(user->pw_uid) + ":";
  const Attack attack = atLevelProcess({.verb = {"read", "/etc/passwd"}});
  const RunOutput output = inSandbox(attack);
  EXPECT_NE(output.out.find("sandbox:x:1000:"), std::string::npos) << output.describe();
  if (!mayWeaken()) return;
  EXPECT_EQ(output.out.find(entry), std::string::npos) << output.describe();
  const std::string users = readFile("/etc/passwd");
  const std::string first = users.substr(0, users.find('\n'));
  EXPECT_NE(weakened("proc-values", attack).out.find(first), std::string::npos) << first;
}

INSTANTIATE_TEST_SUITE_P(Each, AtLevel, testing::Values("full", "process"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Time, SinceBootIsNotTheHosts) {
  CONFORMS("R-LEVEL-22");
  const Attack attack{.verb = {"uptime"}};
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  requireOrSkip(now.tv_sec > 60, "this host has only just booted");
  const auto seconds = [](const RunOutput& output) {
    return std::stol("0" + output.out.substr(output.out.find(' ') + 1));
  };
  EXPECT_LT(seconds(inSandbox(attack)), 10);
  if (!mayWeaken()) return;
  EXPECT_GT(seconds(weakened("time-namespace", attack)), 50);
}

// --- another user id than the caller's, on the host ---

class SeparateUser : public testing::Test {
 protected:
  SeparateUser() { std::ofstream(file_) << "extends = \"bash\"\n[isolation]\nseparate_user = true\n"; }

  [[nodiscard]] Attack attack(std::vector<std::string> verb) const {
    return {.verb = std::move(verb), .options = {"--policy", file_}};
  }

  /// Words of the line `name` in the host's /proc/PID/status of the payload, which waits meanwhile.
  static std::string ofPayload(const std::string& program, const std::vector<std::string>& first,
                               const std::string& policy, const std::string& name) {
    const std::string marker = uniqueWord("separate");
    std::vector<std::string> words{program};
    words.insert(words.end(), first.begin(), first.end());
    words.insert(words.end(), {"--workspace", ":none", "--policy", policy, "--", "sh", "-c", "sleep 60; :", marker});
    const TempDir state;
    BackgroundProgram running(words, {.env = {{"CAISSON_HOME", state.path()}}});
    pid_t payload = -1;
    EXPECT_TRUE(eventually(
        [&] {
          for (const pid_t pid : liveProcesses(marker)) {
            const auto process = processState(pid);
            if (process && process->name == "sh") payload = pid;
          }
          return payload > 0;
        },
        std::chrono::seconds(20)));
    std::ifstream status("/proc/" + std::to_string(payload) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(name + ":")) return line.substr(name.size() + 2);
    }
    return {};
  }

  [[nodiscard]] const std::string& policy() const { return file_; }

  /// An ordinary caller has subordinate ids only where newuidmap is installed and /etc/subuid lists it.
  static std::string whyNot(const std::string& file) {
    const TempDir state;
    const RunOutput plan = runCaisson({"plan", "--json", "--workspace", ":none", "--policy", file, "--", "true"},
                                      {.env = {{"CAISSON_HOME", state.path()}}});
    const auto json = plan.json();
    if (json.is_discarded() || !json.contains("layers")) return plan.describe();
    if (json["layers"]["identity"] == "separate user id") return {};
    return json["warnings"].dump();
  }

 private:
  TempDir directory_;
  std::string file_ = directory_.path() + "/policy.toml";
};

std::string fourTimes(uid_t id) {
  const std::string word = std::to_string(id);
  return word + "\t" + word + "\t" + word + "\t" + word;
}

TEST_F(SeparateUser, PayloadHasAnotherIdOnHost) {
  requireOrSkip(whyNot(policy()).empty(), whyNot(policy()));
  const std::string users = ofPayload(caissonBinary(), {"run", "--quiet"}, policy(), "Uid");
  ASSERT_FALSE(users.empty());
  EXPECT_NE(users, fourTimes(getuid()));
  EXPECT_NE(users, fourTimes(0));
  EXPECT_NE(ofPayload(caissonBinary(), {"run", "--quiet"}, policy(), "Gid"), fourTimes(getgid()));
  if (!mayWeaken()) return;
  EXPECT_EQ(ofPayload(weakenedPath(), {"separate-user"}, policy(), "Uid"), fourTimes(getuid()));
}

TEST_F(SeparateUser, SandboxWorksAsUsual) {
  requireOrSkip(whyNot(policy()).empty(), whyNot(policy()));
  const RunOutput self = inSandbox(attack({"describe-self"}));
  EXPECT_EQ(field(self, "Uid"), "1000 1000 1000 1000") << self.describe();
  EXPECT_EQ(field(self, "Groups"), "") << self.describe();
  for (const char* set : kCapabilitySets) EXPECT_EQ(field(self, set), "0000000000000000") << set;
  EXPECT_TRUE(contained(inSandbox(attack({"become-root"}))));

  const TempDir state;
  const auto run = [&](std::vector<std::string> options, const std::string& script, const std::string& input = {}) {
    std::vector<std::string> words{"run", "--quiet", "--json", "--workspace", ":none", "--policy", policy()};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return runCaisson(words, {.stdin_data = input, .env = {{"CAISSON_HOME", state.path()}}});
  };
  // Streams by name, own files.
  const RunOutput streams = run(
      {}, "read line </dev/stdin; echo $line >/dev/stdout; echo > ~/file; ls -ln ~/file | cut -d' ' -f3,4", "word\n");
  EXPECT_EQ(streams.json()["stdout"], "word\n1000 1000\n") << streams.describe();
  // Also where the caller's own pipe is handed over.
  const RunOutput handed = runCaisson({"run", "--quiet", "--workspace", ":none", "--policy", policy(), "--", "sh", "-c",
                                       "read line </dev/stdin; echo $line >/dev/stdout"},
                                      {.stdin_data = "word\n", .env = {{"CAISSON_HOME", state.path()}}});
  EXPECT_EQ(handed.out, "word\n") << handed.describe();
  // The supervisor reaches processes of another user: it kills them, sees refused calls and what they hold.
  EXPECT_EQ(run({"--timeout", "1s"}, "sleep 60 & sleep 60").exit_status, 124);
  const RunOutput refused = run({}, "unshare -U true; true");
  EXPECT_FALSE(refused.json()["violations"].empty()) << refused.describe();
  // Each memory file stays below the limit on file sizes, all of them are far above the limit on memory.
  const RunOutput memory = run({"--memory", "64M", "--ro", payloadPath()},
                               "for i in 1 2 3 4 5 6; do " + payloadPath() + " take-memfd 90 & done; wait");
  EXPECT_EQ(memory.json()["limit"], "memory") << memory.describe();
}

// --- the sandbox checks itself before the payload starts ---

class SelfTest : public testing::TestWithParam<const char*> {};

TEST_P(SelfTest, RefusesToStartThePayloadWithoutThisProtection) {
  CONFORMS("R-LEVEL-12");
  if (!mayWeaken()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  const Attack attack{.verb = {"host-name"}};
  const RunOutput refused = weakened(GetParam(), attack);
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_NE(refused.err.find("self-test"), std::string::npos) << refused.describe();
  EXPECT_EQ(refused.out, "") << "the payload ran";
  const RunOutput started = weakened(std::string(GetParam()) + ",self-test", attack);
  EXPECT_EQ(started.exit_status, 0) << started.describe();
}

TEST(SelfTestAtLevelProcess, RefusesToStartThePayloadThatCouldListTheHostsRoot) {
  CONFORMS("R-LEVEL-12");
  if (!mayWeaken()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  const Attack attack = atLevelProcess({.verb = {"host-name"}});
  const RunOutput refused = weakened("landlock-root", attack);
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_NE(refused.err.find("the host's root can be listed"), std::string::npos) << refused.describe();
  EXPECT_EQ(refused.out, "") << "the payload ran";
  EXPECT_EQ(weakened("landlock-root,self-test", attack).exit_status, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, SelfTest,
                         testing::Values("capabilities", "no-new-privileges,capabilities", "read-only-root,landlock",
                                         "allow:openat2"),
                         [](const auto& test) { return "case" + std::to_string(test.index); });

}  // namespace
}  // namespace caisson::test
