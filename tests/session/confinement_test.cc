// A session's supervisor is confined before the first payload runs; the launcher does what it may not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "support/conforms.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

using nlohmann::json;

/// CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID and PERFMON: the layers belong to the payload's user.
constexpr std::uint64_t kFileCapabilities = 0x400000001f;

class SupervisorConfinement : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
  }
  /// A line of /proc/PID/status.
  static std::string status(pid_t pid, const std::string& key) {
    std::istringstream lines(readFile("/proc/" + std::to_string(pid) + "/status"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(key + ":")) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
    }
    return "";
  }
  static std::uint64_t capabilities(pid_t pid, const std::string& set) {
    return std::strtoull(status(pid, set).c_str(), nullptr, 16);
  }
  static void expectConfined(pid_t supervisor) {
    ASSERT_GT(supervisor, 1) << "no process supervises the session";
    EXPECT_EQ(status(supervisor, "Seccomp"), "2");
    EXPECT_EQ(status(supervisor, "NoNewPrivs"), "1");
    EXPECT_EQ(capabilities(supervisor, "CapInh"), 0U);
    EXPECT_EQ(capabilities(supervisor, "CapAmb"), 0U);
    const std::uint64_t allowed = ::geteuid() == 0 ? kFileCapabilities : 0;
    for (const char* set : {"CapPrm", "CapEff"}) EXPECT_EQ(capabilities(supervisor, set) & ~allowed, 0U) << set;
    if (::geteuid() == 0) {
      EXPECT_EQ(capabilities(supervisor, "CapBnd") & ~allowed, 0U);
    }
  }

  const SessionCli cli;
};

TEST_F(SupervisorConfinement, FilterAndNoPrivilegesBeforeTheFirstCommand) {
  const std::string id = cli.create();
  expectConfined(sessionSupervisor(id));
  ASSERT_EQ(cli.script(id, "echo x > file").exit_status, 0);
  expectConfined(sessionSupervisor(id));
}

TEST_F(SupervisorConfinement, DoesNotReachPayloads) {
  CONFORMS("R-LEVEL-11");
  const std::string id = cli.create();
  const RunOutput output = cli.exec(id, {"grep", "^Seccomp_filters:", "/proc/self/status"});
  // That of the command, and the one by which pid 1 protects its spawning thread.
  EXPECT_EQ(output.out, "Seccomp_filters:\t2\n") << output.describe();
}

TEST_F(SupervisorConfinement, NextSupervisorIsConfinedToo) {
  const std::string id = cli.create();
  ASSERT_EQ(cli.caisson({"session", "expose", id, "3000"}).exit_status,
            0);  // keeps the supervisor alive over a checkpoint
  const pid_t first = sessionSupervisor(id);
  ASSERT_EQ(cli.script(id, "echo x > file").exit_status, 0);
  ASSERT_EQ(cli.caisson({"session", "checkpoint", id, "one"}).exit_status, 0);
  const RunOutput output = cli.script(id, "cat file");
  EXPECT_EQ(output.out, "x\n") << output.describe();
  const pid_t second = sessionSupervisor(id);
  EXPECT_NE(second, first);
  expectConfined(second);
  EXPECT_TRUE(eventually([&] { return !processState(first); })) << "the first supervisor is still there";
  EXPECT_NE(cli.caisson({"session", "expose", id}).out.find("session 3000"), std::string::npos) << "the port is lost";
}

TEST_F(SupervisorConfinement, AlertProgramStillRuns) {
  const TempDir config;
  const std::string told = config / "alert.json";
  config.write("caisson/config.toml", "[alerts]\ncommand = [\"/bin/sh\", \"-c\", \"cat > " + told + "\"]\n");
  RunOptions how = cli.options();
  how.env["XDG_CONFIG_HOME"] = config.path();
  const RunOutput made = runCaisson({"session", "create", "--workspace", cli.workspace.path()}, how);
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
#if defined(__x86_64__)
  const std::string call = "321";  // bpf
#else
  const std::string call = "280";
#endif
  const RunOutput attack = runCaisson({"session", "exec", id, "--", "./payload", "call", call, "99", "0", "0"}, how);
  EXPECT_EQ(attack.exit_status, 125) << attack.describe();
  EXPECT_EQ(json::parse(readFile(told), nullptr, false).value("event", ""), "escape_attempt") << attack.describe();
  EXPECT_TRUE(cli.events("alert_failed").empty());
}

TEST_F(SupervisorConfinement, LongHistoryIsStillMerged) {
  const std::string id = cli.create();
  for (int i = 0; i < 18; ++i) {
    ASSERT_EQ(cli.script(id, "echo " + std::to_string(i) + " > file" + std::to_string(i)).exit_status, 0);
  }
  const std::string sessions = cli.home / ("state/sessions/" + id + "/meta.json");
  EXPECT_TRUE(eventually([&] {
    const json metadata = json::parse(readFile(sessions), nullptr, false);
    return metadata.is_object() && metadata.contains("frozen") && metadata["frozen"].size() < 16;
  })) << readFile(sessions);
  EXPECT_EQ(cli.script(id, "cat file0 file17").out, "0\n17\n");
}

}  // namespace
}  // namespace caisson::test
