#include "support/run.h"

#include <gtest/gtest.h>

#include <csignal>

#include "support/environment.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;

TEST(Run, CapturesBothStreamsAndTheExitStatus) {
  const RunOutput output = runProgram({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(output.exit_status, 3);
  EXPECT_EQ(output.signal, 0);
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
}

TEST(Run, PassesInputEnvironmentAndDirectory) {
  const RunOutput output =
      runProgram({"sh", "-c", "cat; echo $GIVEN; pwd"}, {.stdin_data = "in\n", .env = {{"GIVEN", "x"}}, .cwd = "/"});
  EXPECT_EQ(output.out, "in\nx\n/\n");
}

TEST(Run, MovesMoreThanAPipeHoldsBothWays) {
  const std::string megabyte(1 << 20, 'x');
  EXPECT_EQ(runProgram({"cat"}, {.stdin_data = megabyte}).out, megabyte);
}

TEST(Run, SurvivesAProgramThatDoesNotReadItsInput) {
  EXPECT_EQ(runProgram({"true"}, {.stdin_data = std::string(1 << 20, 'x')}).exit_status, 0);
}

TEST(Run, KillsTheGroupAfterTheTimeout) {
  const RunOutput output = runProgram({"sh", "-c", "sleep 30 & sleep 30"}, {.timeout = milliseconds(200)});
  EXPECT_TRUE(output.timed_out);
  EXPECT_EQ(output.signal, SIGKILL);
  EXPECT_LT(output.duration, milliseconds(5000));
}

TEST(Run, SaysWhichSignalEndedTheProgram) {
  const RunOutput output = runProgram({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(output.signal, SIGTERM);
  EXPECT_EQ(output.exit_status, 128 + SIGTERM);
}

TEST(Run, ReportsAMissingProgramAsAShellDoes) { EXPECT_EQ(runProgram({"no-such-program"}).exit_status, 127); }

TEST(Run, ClosesStandardDescriptors) {
  EXPECT_EQ(runProgram({"sh", "-c", "test ! -e /proc/self/fd/0"}, {.close = {0}}).exit_status, 0);
}

TEST(Run, ParsesJsonAndMarksWhatIsNot) {
  EXPECT_EQ(runProgram({"echo", R"({"a": 1})"}).json()["a"], 1);
  EXPECT_TRUE(runProgram({"echo", "not json"}).json().is_discarded());
}

TEST(BackgroundProgram, CanBeSignalledAndWaitedFor) {
  BackgroundProgram program({"sleep", "30"});
  EXPECT_FALSE(program.wait(milliseconds(50)));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(milliseconds(5000)), 128 + SIGTERM);
}

TEST(Environment, FindsProgramsOnThePath) {
  EXPECT_TRUE(hasProgram("sh"));
  EXPECT_FALSE(hasProgram("no-such-program"));
}

}  // namespace
}  // namespace caisson::test
