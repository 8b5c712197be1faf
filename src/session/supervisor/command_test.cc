#include "session/supervisor/command.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "session/store/background_files.h"

namespace caisson::session {
namespace {

class CommandResult : public testing::Test {
 protected:
  CommandResult() {
    command.plan = std::make_shared<plan::Plan>();
    command.plan->command = {"prog"};
    command.options.command = {"prog"};
    command.began = Command::Clock::now();
    command.runner = std::make_unique<supervise::CommandRunner>(loop, [] {});
  }
  void exit(int status) {
    InitReply reply;
    reply.status = status;
    reply.user_us = 1500;
    command.exited = reply;
  }
  sys::EventLoop loop;
  Command command;
};

TEST_F(CommandResult, HasSessionStatusUsageAndNotice) {
  exit(3 << 8);
  command.options.notice = "restarted";
  const RunResult result = resultOf(command, "cs-1");
  EXPECT_EQ(result.outcome, OutcomeKind::exited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.sandbox_id, "cs-1");
  EXPECT_DOUBLE_EQ(result.usage.user_cpu_ms, 1.5);
  EXPECT_EQ(result.notices.back(), "restarted");
}

TEST_F(CommandResult, ReportsTheEndOfTheSession) {
  command.runner->noteCause(EndedBy::sandbox, Limit::none, "the session expired");
  const RunResult result = resultOf(command, "cs-1");
  EXPECT_EQ(result.outcome, OutcomeKind::signaled);
  EXPECT_NE(result.notices.back().find("the session expired"), std::string::npos);
}

TEST_F(CommandResult, EndRecordHasTheOutcome) {
  exit(SIGKILL);
  command.runner->noteCause(EndedBy::sibling_escape);
  EXPECT_EQ(endRecordOf(command, resultOf(command, "cs-1")).outcome, static_cast<std::uint32_t>(OutcomeKind::denied));
}

}  // namespace
}  // namespace caisson::session
