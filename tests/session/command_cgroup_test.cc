// Where sessions have a cgroup, each command has a separate one inside: for usage, OOM kills and kills.
#include <gtest/gtest.h>

#include <csignal>

#include "support/conforms.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class CommandCgroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    const json layers = cli.exec(cli.create(), {"true"}, {"--json"}).json()["layers"];
    kind = layers.value("cgroup", "missing");
    requireOrSkip(kind.starts_with("v"), "no cgroup for sessions here: " + kind);
  }
  [[nodiscard]] bool v1() const { return kind.starts_with("v1"); }
  [[nodiscard]] bool allGone() const { return liveProcesses(cli.marker()).empty(); }

  const SessionCli cli;
  std::string kind;
};

TEST_F(CommandCgroup, TimeoutKillsProcessesThatLeftTheCommand) {
  const std::string id = cli.create();
  const RunOutput output =
      cli.exec(id, {"sh", "-c", "(setsid sh -c 'while :; do sleep 600; done' \"$0\" &) ; sleep 60; :", cli.marker()},
               {"--timeout", "1s"}, seconds(10));
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_TRUE(eventually([&] { return allGone(); }, seconds(5))) << "a daemon of the command is still there";
}

TEST_F(CommandCgroup, ExitLeavesDaemonsAndLaterCommandsAlone) {
  const std::string id = cli.create();
  EXPECT_EQ(cli.script(id, "(setsid sh -c 'while :; do sleep 600; done' \"$0\" &)").exit_status, 0);
  const pid_t daemon = firstLiveProcess(cli.marker());
  ASSERT_GT(daemon, 1);
  const RunOutput late = cli.exec(id, {"sleep", "60"}, {"--timeout", "1s"}, seconds(10));
  EXPECT_EQ(late.exit_status, 124) << late.describe();
  EXPECT_TRUE(processState(daemon)) << "the end of another command killed it";
  EXPECT_EQ(cli.exec(id, {"echo", "works"}).out, "works\n");
}

TEST_F(CommandCgroup, OutOfMemoryEndsOneCommandOnV1) {
  requireOrSkip(v1(), "on v2 the kernel kills the whole session");
  const std::string id = cli.create("[resources]\nmemory = \"64M\"\n");
  cli.start(id, {"sh", "-c", "while :; do sleep 600; done", cli.marker()});
  ASSERT_TRUE(eventually([&] { return !allGone(); }));
  const json result = cli.exec(id, {"sh", "-c", "./payload take-anonymous 200; sleep 5"}, {"--json"}).json();
  EXPECT_EQ(result["outcome"], "limit") << result;
  EXPECT_EQ(result["limit"], "memory") << result;
  EXPECT_EQ(result["notices"].dump().find("every process"), std::string::npos) << result;
  EXPECT_FALSE(allGone()) << "another command was killed as well";
  EXPECT_EQ(cli.exec(id, {"echo", "works"}).out, "works\n");
}

TEST_F(CommandCgroup, OutOfMemoryOfLeftBehindProcessIsRecordedOnV1) {
  requireOrSkip(v1(), "on v2 the kernel kills the whole session");
  const std::string id = cli.create("[resources]\nmemory = \"64M\"\n");
  const std::string late =
      "(setsid sh -c 'while [ ! -e /tmp/go ]; do sleep 0.1; done; ./payload take-anonymous 200; touch /tmp/after; "
      "while :; do sleep 600; done' \"$0\" >/dev/null 2>&1 &)";
  ASSERT_EQ(cli.script(id, late).exit_status, 0);
  const RunOutput output =
      cli.exec(id, {"sh", "-c", "touch /tmp/go; while [ ! -e /tmp/after ]; do sleep 0.1; done; echo lives"});
  EXPECT_EQ(output.out, "lives\n") << output.describe();
  EXPECT_TRUE(eventually([&] { return cli.events("limit_exceeded").size() == 1; }));
}

TEST_F(CommandCgroup, UsageCountsChildrenThatNothingWaitsFor) {
  CONFORMS("R-LIMIT-11");
  const std::string id = cli.create("[resources]\ncpu_seconds = \"60s\"\n");
  const std::string burn =
      "(setsid sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; touch /tmp/done' &); "
      "while [ ! -e /tmp/done ]; do sleep 0.05; done";
  const json busy = cli.exec(id, {"sh", "-c", burn}, {"--json"}).json();
  const json idle = cli.exec(id, {"true"}, {"--json"}).json();
  ASSERT_TRUE(busy.is_object() && idle.is_object());
  EXPECT_GT(busy["usage"]["user_cpu_ms"].get<double>(), 30) << busy["usage"];
  EXPECT_LT(idle["usage"]["user_cpu_ms"].get<double>(), busy["usage"]["user_cpu_ms"].get<double>() / 2)
      << "counted from the command before: " << idle["usage"];
}

TEST_F(CommandCgroup, IsUsedAgainAndRemovedWithTheSession) {
  const auto directories = [&](const std::string& id) {
    return runProgram({"sh", "-c",
                       "find /sys/fs/cgroup -type d -path \"*" + id +
                           "*/command-*\" 2>/dev/null | "
                           "sed 's,.*/,,' | sort -u | wc -l"})
        .out;
  };
  const std::string id = cli.create();
  for (int i = 0; i < 20; ++i) ASSERT_EQ(cli.exec(id, {"true"}).exit_status, 0);
  EXPECT_EQ(directories(id), "1\n") << "twenty commands, one after the other";
  ASSERT_EQ(cli.caisson({"session", "destroy", id}).exit_status, 0);
  EXPECT_TRUE(eventually([&] { return directories(id) == "0\n"; })) << "a cgroup is left behind";
}

TEST_F(CommandCgroup, IsRemovedAfterTheSupervisorWasKilled) {
  const auto directories = [&](const std::string& id) {
    return runProgram({"sh", "-c", "find /sys/fs/cgroup -type d -path \"*" + id + "*\" 2>/dev/null | wc -l"}).out;
  };
  const std::string id = cli.create();
  cli.start(id, {"sh", "-c", "while :; do sleep 600; done", cli.marker()});
  ASSERT_TRUE(eventually([&] { return !allGone(); }));
  EXPECT_NE(directories(id), "0\n");
  ASSERT_TRUE(signalProcess(sessionSupervisor(id), SIGKILL));
  EXPECT_TRUE(eventually([&] { return allGone(); }, seconds(5)));
  ASSERT_EQ(cli.caisson({"session", "destroy", id}).exit_status, 0);
  EXPECT_TRUE(eventually([&] {
    (void)cli.caisson({"clean"});
    return directories(id) == "0\n";
  })) << "a cgroup is left behind";
}

}  // namespace
}  // namespace caisson::test
