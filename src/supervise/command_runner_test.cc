#include "supervise/command_runner.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;
using Clock = CommandRunner::Clock;

class CommandRunnerTest : public testing::Test {
 protected:
  sys::EventLoop loop;
  int kills = 0;
  CommandRunner runner{loop, [this] { ++kills; }};
};

TEST_F(CommandRunnerTest, FirstCauseWinsAndKillsOnce) {
  runner.end(EndedBy::limit, Limit::disk, "full");
  runner.end(EndedBy::client);
  runner.end(EndedBy::timeout);
  EXPECT_EQ(kills, 1);
  EXPECT_EQ(runner.exit().ended_by, EndedBy::limit);
  EXPECT_EQ(runner.exit().limit, Limit::disk);
  EXPECT_EQ(runner.exit().reason, "full");
}

TEST_F(CommandRunnerTest, FailureThatFollowsFromBeingKilledIsIgnored) {
  runner.end(EndedBy::timeout);
  runner.fail(sysError(Stage::launch, "mount", "x", EINVAL));
  EXPECT_FALSE(runner.exit().failure);
}

TEST_F(CommandRunnerTest, FailureIsNotReplacedByALaterCause) {
  runner.failAndKill(sysError(Stage::launch, "mount", "x", EINVAL));
  runner.end(EndedBy::timeout);
  runner.failAndKill(sysError(Stage::launch, "clone", "y", EPERM));
  EXPECT_EQ(kills, 1);
  EXPECT_EQ(runner.exit().ended_by, EndedBy::itself);
  EXPECT_EQ(runner.exit().failure->sys_errno, EINVAL);
}

TEST_F(CommandRunnerTest, NotedCauseDoesNotKill) {
  runner.noteCause(EndedBy::sandbox);
  EXPECT_EQ(kills, 0);
  EXPECT_EQ(runner.exit().ended_by, EndedBy::sandbox);
}

TEST_F(CommandRunnerTest, TimeLimitKills) {
  runner.limitTime(Clock::now(), 0.01);
  loop.at(Clock::now() + milliseconds(50), [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(kills, 1);
  EXPECT_EQ(runner.exit().ended_by, EndedBy::timeout);
}

TEST_F(CommandRunnerTest, StoppedClockDoesNotKill) {
  runner.limitTime(Clock::now(), 0.005);
  runner.stopClock();
  loop.at(Clock::now() + milliseconds(20), [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(kills, 0);
}

TEST_F(CommandRunnerTest, KillMayDestroyTheRunner) {
  std::unique_ptr<CommandRunner> owned;
  owned = std::make_unique<CommandRunner>(loop, [&] { owned.reset(); });
  owned->end(EndedBy::client);
  EXPECT_EQ(owned, nullptr);
}

}  // namespace
}  // namespace caisson::supervise
