#include "sys/process_start.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace caisson::sys {
namespace {

TEST(ProcessStart, IsTheTwentySecondFieldAfterAnyName) {
  EXPECT_EQ(processStartIn("7 (a) S 1 7 7 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711 99 1"), 4711U);
  EXPECT_EQ(processStartIn("7 (a) b) (c) S 1 7 7 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711 99 1"), 4711U);
}

TEST(ProcessStart, MalformedTextGivesZero) {
  for (const char* text : {"", "7", "7 (a", "7 (a) S 1 2", ")"}) EXPECT_EQ(processStartIn(text), 0U) << text;
}

TEST(ProcessStart, IsZeroForAProcessThatIsGone) {
  EXPECT_GT(processStart(::getpid()), 0U);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(processStart(child), 0U);
}

TEST(ProcessStart, ZombieDoesNotRun) {
  EXPECT_TRUE(stillRuns(::getpid(), processStart(::getpid())));
  EXPECT_FALSE(stillRuns(::getpid(), processStart(::getpid()) + 1)) << "another process had this pid";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const std::uint64_t start = processStart(child);
  EXPECT_GT(start, 0U);
  EXPECT_FALSE(stillRuns(child, start));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ProcessStart, ProcessWhoseFirstThreadExitedRuns) {
  EXPECT_TRUE(stillRunsIn("7 (a) Z 1 7 7 0 -1 4 5 6 7 8 9 10 11 12 20 0 2 0 4711 99 1", 4711));
  EXPECT_FALSE(stillRunsIn("7 (a) Z 1 7 7 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711 99 1", 4711));
  EXPECT_FALSE(stillRunsIn("", 0));
}

}  // namespace
}  // namespace caisson::sys
