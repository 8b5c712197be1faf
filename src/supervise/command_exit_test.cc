#include "supervise/command_exit.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace caisson::supervise {
namespace {

class ClassifyTest : public testing::TestWithParam<bool> {
 protected:
  ClassifyTest() {
    plan.command = {"prog"};
    exit.in_session = GetParam();
  }
  RunResult classified() {
    classify(exit, plan, result);
    return result;
  }
  plan::Plan plan;
  CommandExit exit;
  RunResult result;
};

INSTANTIATE_TEST_SUITE_P(Kinds, ClassifyTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "session" : "run"; });

TEST_P(ClassifyTest, OwnExitStatusIsTheOutcome) {
  exit.wait_status = 3 << 8;
  EXPECT_EQ(classified().outcome, OutcomeKind::exited);
  EXPECT_EQ(result.exit_code, 3);
}

TEST_P(ClassifyTest, SignalIsTheOutcome) {
  exit.wait_status = SIGSEGV;
  EXPECT_EQ(classified().outcome, OutcomeKind::signaled);
  EXPECT_EQ(result.signal, SIGSEGV);
}

TEST_P(ClassifyTest, TimeoutWinsOverTheSignalThatKilledIt) {
  exit.wait_status = SIGKILL;
  exit.killed = true;
  exit.ended_by = EndedBy::timeout;
  EXPECT_EQ(classified().outcome, OutcomeKind::limit);
  EXPECT_EQ(result.limit, Limit::time);
}

TEST_P(ClassifyTest, FailureBeforeExecIsASetupFailure) {
  exit.wait_status = 125 << 8;
  exit.failure = sysError(Stage::exec, "execve", "prog", ENOENT);
  EXPECT_EQ(classified().outcome, OutcomeKind::setup_failed);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->sys_errno, ENOENT);
}

TEST_P(ClassifyTest, OutOfMemoryWinsOverTimeout) {
  exit.out_of_memory = true;
  exit.killed = true;
  exit.ended_by = EndedBy::timeout;
  EXPECT_EQ(classified().limit, Limit::memory);
}

TEST_P(ClassifyTest, ProgramThatSurvivesAMemoryKillKeepsItsExit) {
  exit.out_of_memory = true;
  exit.wait_status = 0;
  EXPECT_EQ(classified().outcome, OutcomeKind::exited);
}

TEST_P(ClassifyTest, EscapeIsDenied) {
  exit.wait_status = SIGKILL;
  exit.killed = true;
  result.escape = Escape{};
  EXPECT_EQ(classified().outcome, OutcomeKind::denied);
  ASSERT_TRUE(result.error);
}

TEST_P(ClassifyTest, CallerThatCancelsGetsCancelled) {
  exit.wait_status = SIGKILL;
  exit.killed = true;
  exit.ended_by = EndedBy::client;
  EXPECT_EQ(classified().outcome, OutcomeKind::cancelled);
}

TEST_P(ClassifyTest, FileSizeSignalIsALimit) {
  exit.wait_status = SIGXFSZ;
  EXPECT_EQ(classified().outcome, OutcomeKind::limit);
  EXPECT_EQ(result.limit, Limit::file_size);
}

TEST_P(ClassifyTest, FileSizeSignalUnderADiskQuotaIsTheQuota) {
  plan.disk.emplace().bytes = 1000;
  exit.wait_status = (128 + SIGXFSZ) << 8;  // a shell whose child got the signal
  EXPECT_EQ(classified().limit, Limit::disk);
  EXPECT_EQ(result.exit_code, 128 + SIGXFSZ);
}

TEST_P(ClassifyTest, LimitReachedByASuccessfulProgramIsNotTheOutcome) {
  exit.met = Limit::processes;
  exit.wait_status = 0;
  EXPECT_EQ(classified().outcome, OutcomeKind::exited);
  EXPECT_EQ(result.limit, Limit::none);
}

TEST_P(ClassifyTest, CpuSignalAtTheLimitIsTheLimit) {
  plan.cpu_seconds = 1;
  result.usage.user_cpu_ms = 990;
  exit.wait_status = SIGXCPU;
  EXPECT_EQ(classified().limit, Limit::cpu);
}

TEST_P(ClassifyTest, CpuSignalFarBelowTheLimitIsASignal) {
  plan.cpu_seconds = 1;
  result.usage.user_cpu_ms = 100;
  exit.wait_status = SIGXCPU;
  EXPECT_EQ(classified().outcome, OutcomeKind::signaled);
}

class ClassifySession : public ClassifyTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, ClassifySession, testing::Values(true));

TEST_P(ClassifySession, LimitNamesItselfAndItsReason) {
  exit.wait_status = SIGKILL;
  exit.killed = true;
  exit.ended_by = EndedBy::limit;
  exit.limit = Limit::disk;
  exit.reason = "12 MiB of 10 MiB";
  EXPECT_EQ(classified().limit, Limit::disk);
  ASSERT_EQ(result.notices.size(), 2U);
  EXPECT_EQ(result.notices[0], "12 MiB of 10 MiB");
}

TEST_P(ClassifySession, OwnCpuLimitDoesNotClaimThatEverythingWasKilled) {
  exit.killed = true;
  exit.ended_by = EndedBy::limit;
  exit.limit = Limit::cpu;
  EXPECT_TRUE(classified().notices.empty());
}

TEST_P(ClassifySession, StoppedNewbornIsASetupFailureWithAReason) {
  exit.killed = true;
  exit.ended_by = EndedBy::setup_timeout;
  EXPECT_EQ(classified().outcome, OutcomeKind::setup_failed);
  EXPECT_NE(result.error->reason.find("did not start its program in time"), std::string::npos);
}

TEST_P(ClassifySession, EndOfTheSandboxIsASignalWithAReason) {
  exit.ended_by = EndedBy::sandbox;
  exit.reason = "the session expired";
  EXPECT_EQ(classified().outcome, OutcomeKind::signaled);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_NE(result.notices.back().find("the session expired"), std::string::npos);
}

TEST_P(ClassifySession, EscapeOfAnotherCommandIsDenied) {
  exit.wait_status = SIGKILL;
  exit.killed = true;
  exit.ended_by = EndedBy::sibling_escape;
  EXPECT_EQ(classified().outcome, OutcomeKind::denied);
}

TEST(ClassifyRun, InitThatVanishesIsASetupFailure) {
  plan::Plan plan;
  plan.command = {"prog"};
  RunResult result;
  classify({}, plan, result);
  EXPECT_EQ(result.outcome, OutcomeKind::setup_failed);
  EXPECT_NE(result.error->reason.find("exited without a report"), std::string::npos);
}

}  // namespace
}  // namespace caisson::supervise
