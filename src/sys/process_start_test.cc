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

}  // namespace
}  // namespace caisson::sys
