#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "support/run.h"

namespace caisson::test {
namespace {

TEST(Watchdog, HungTestIsNamedAndAborted) {
  if (std::getenv("CAISSON_TEST_HANGS") != nullptr) {
    for (;;) ::pause();
  }
  const RunOutput output = runProgram(
      {"/proc/self/exe", "--gtest_filter=Watchdog.*"},
      {.env = {{"CAISSON_TEST_HANGS", "1"}, {"CAISSON_TEST_SECONDS", "1"}}, .timeout = std::chrono::seconds(30)});
  EXPECT_EQ(output.signal, SIGABRT) << output.describe();
  EXPECT_NE(output.err.find("[  HUNG    ] Watchdog.HungTestIsNamedAndAborted"), std::string::npos) << output.err;
}

}  // namespace
}  // namespace caisson::test
