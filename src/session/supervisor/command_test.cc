#include "session/supervisor/command.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

#include "session/store/background_files.h"

namespace caisson::session {
namespace {

class ClassifyCommand : public testing::Test {
 protected:
  ClassifyCommand() {
    command.plan = std::make_shared<plan::Plan>();
    command.plan->command = {"prog"};
    command.options.command = {"prog"};
    command.began = Command::Clock::now();
  }
  void exit(int status) {
    InitReply reply;
    reply.status = status;
    reply.user_us = 1500;
    command.exited = reply;
  }
  [[nodiscard]] RunResult result() const { return classifyCommand(command, "cs-1"); }
  Command command;
};

TEST_F(ClassifyCommand, OwnExitStatusIsTheOutcome) {
  exit(3 << 8);
  EXPECT_EQ(result().outcome, OutcomeKind::exited);
  EXPECT_EQ(result().exit_code, 3);
  EXPECT_EQ(result().sandbox_id, "cs-1");
  EXPECT_DOUBLE_EQ(result().usage.user_cpu_ms, 1.5);
}

TEST_F(ClassifyCommand, SignalIsTheOutcome) {
  exit(SIGSEGV);
  EXPECT_EQ(result().outcome, OutcomeKind::signaled);
  EXPECT_EQ(result().signal, SIGSEGV);
}

TEST_F(ClassifyCommand, TimeoutWinsOverTheSignalThatEndedIt) {
  exit(SIGKILL);
  command.ended_by = EndedBy::timeout;
  EXPECT_EQ(result().outcome, OutcomeKind::limit);
  EXPECT_EQ(result().limit, Limit::time);
}

TEST_F(ClassifyCommand, SessionLimitNamesItselfAndItsReason) {
  exit(SIGKILL);
  command.ended_by = EndedBy::limit;
  command.limit = Limit::disk;
  command.reason = "12 MiB of 10 MiB";
  EXPECT_EQ(result().limit, Limit::disk);
  ASSERT_EQ(result().notices.size(), 2U);
  EXPECT_EQ(result().notices[0], "12 MiB of 10 MiB");
}

TEST_F(ClassifyCommand, OwnCpuLimitDoesNotClaimThatEverythingWasKilled) {
  exit(SIGKILL);
  command.ended_by = EndedBy::limit;
  command.limit = Limit::cpu;
  EXPECT_TRUE(result().notices.empty());
}

TEST_F(ClassifyCommand, FailureBeforeExecIsASetupFailure) {
  exit(125 << 8);
  command.failure = sysError(Stage::exec, "execve", "prog", ENOENT);
  EXPECT_EQ(result().outcome, OutcomeKind::setup_failed);
  ASSERT_TRUE(result().error);
  EXPECT_EQ(result().error->sys_errno, ENOENT);
}

TEST_F(ClassifyCommand, StoppedNewbornIsASetupFailureWithAReason) {
  command.ended_by = EndedBy::setup_timeout;
  EXPECT_EQ(result().outcome, OutcomeKind::setup_failed);
  EXPECT_NE(result().error->reason.find("did not start its program in time"), std::string::npos);
}

TEST_F(ClassifyCommand, ClientThatCancelsGetsCancelled) {
  exit(SIGKILL);
  command.ended_by = EndedBy::client;
  EXPECT_EQ(result().outcome, OutcomeKind::cancelled);
}

TEST_F(ClassifyCommand, EndOfTheSandboxIsASignalAndSaysWhy) {
  command.ended_by = EndedBy::sandbox;
  command.reason = "the session expired";
  EXPECT_EQ(result().outcome, OutcomeKind::signaled);
  EXPECT_EQ(result().signal, SIGKILL);
  EXPECT_NE(result().notices.back().find("the session expired"), std::string::npos);
}

TEST_F(ClassifyCommand, EscapeOfAnotherCommandIsDenied) {
  exit(SIGKILL);
  command.ended_by = EndedBy::escape;
  EXPECT_EQ(result().outcome, OutcomeKind::denied);
  EXPECT_EQ(endRecordOf(command, result()).outcome, static_cast<std::uint32_t>(OutcomeKind::denied));
}

}  // namespace
}  // namespace caisson::session
