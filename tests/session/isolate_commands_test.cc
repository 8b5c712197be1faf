// With process.isolate_commands, commands of one session do not signal or limit each other.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/supervisor_fixture.h"

namespace caisson::test {
namespace {

using nlohmann::json;

class IsolateCommands : public SupervisorTest {
 protected:
  void SetUp() override {
    SupervisorTest::SetUp();
    if (IsSkipped()) return;
    constexpr int kVersion = 1;
    requireOrSkip(::syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersion) >= 6, "needs Landlock ABI 6");
  }
};

std::string isolatePolicy(bool isolate) {
  return std::string("[process]\nisolate_commands = ") + (isolate ? "true" : "false") + "\n";
}

TEST_F(IsolateCommands, KeepsSiblingsFromStoppingAndKillingEachOther) {
  for (const bool isolate : {false, true}) {
    SCOPED_TRACE(isolate ? "isolated" : "not isolated");
    const std::string id = cli.create(isolatePolicy(isolate));
    cli.start(id, {"sh", "-c", "while :; do sleep 600; done", cli.marker()});
    ASSERT_TRUE(eventually([&] { return !allGone(); }));
    const pid_t victim = firstLiveProcess(cli.marker());
    EXPECT_EQ(cli.exec(id, {"sh", "-c", "kill -STOP -1; :"}).exit_status, 0);
    if (!isolate) {
      EXPECT_TRUE(eventually([&] { return anyStopped(); })) << "without the option the attack works";
    }
    EXPECT_EQ(cli.exec(id, {"sh", "-c", "kill -KILL -1; :"}).exit_status, 0);
    if (!isolate) {
      EXPECT_TRUE(eventually([&] { return allGone(); })) << "without the option the attack works";
      continue;
    }
    const auto state = processState(victim);
    ASSERT_TRUE(state) << "the sibling was killed";
    EXPECT_NE(state->state, 'T') << "the sibling was stopped";
    EXPECT_EQ(cli.exec(id, {"sh", "-c", "sleep 60 & kill -KILL $!; wait $!; echo $?"}).out, "137\n")
        << "a command signals its own processes";
    EXPECT_EQ(cli.caisson({"session", "stop", id, "1"}).exit_status, 0);
    EXPECT_TRUE(eventually([&] { return allGone(); })) << "it is stopped from outside";
  }
}

TEST_F(IsolateCommands, KeepsSiblingsFromLimitingEachOther) {
  requireOrSkip(hasProgram("prlimit"), "no prlimit");
  for (const bool isolate : {false, true}) {
    SCOPED_TRACE(isolate ? "isolated" : "not isolated");
    const std::string id = cli.create(isolatePolicy(isolate));
    cli.start(id, {"sh", "-c", "echo $$ > pid.new; mv pid.new pid; while :; do sleep 600; done", cli.marker()});
    const RunOutput output =
        cli.exec(id, {"sh", "-c",
                      "until [ -s pid ]; do sleep 0.1; done; prlimit --pid $(cat pid) --nofile=64:64 && echo other; "
                      "prlimit --core=0:0 && echo own"});
    EXPECT_EQ(output.out, isolate ? "own\n" : "other\nown\n") << output.describe();
  }
}

TEST_F(IsolateCommands, ShowsInPlanAndResult) {
  const std::string policy = cli.home.write("isolate.toml", "extends = \"bash\"\n" + isolatePolicy(true));
  const RunOutput plan = cli.caisson({"plan", "--policy", policy, "--workspace", ":none", "--", "true"});
  EXPECT_NE(plan.out.find("command_isolation"), std::string::npos) << plan.describe();
  const json result = cli.exec(cli.create(isolatePolicy(true)), {"true"}, {"--json"}).json();
  EXPECT_TRUE(result["layers"].contains("command_isolation")) << result;
  const json plain = cli.exec(cli.create(), {"true"}, {"--json"}).json();
  EXPECT_FALSE(plain["layers"].contains("command_isolation")) << plain;
}

}  // namespace
}  // namespace caisson::test
