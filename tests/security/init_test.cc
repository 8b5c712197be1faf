// Pid 1 of the sandbox is caisson's process under the payload's uid. The payload can't read it, trace it, stop it, or
// take descriptors from it.
#include <csignal>
#include <regex>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// Hidden in /proc, undumpable with its memory unmapped, and outside the payload's Landlock domain: each of the three
/// is sufficient, so all must be disabled.
constexpr const char* kHiding = "hidden-processes,hidden-init,landlock";

class InitFile : public testing::TestWithParam<const char*> {};

TEST_P(InitFile, CannotBeOpened) {
  expectOnlyStoppedBy(kHiding, {.verb = {"open", std::string("/proc/1/") + GetParam()}});
}

INSTANTIATE_TEST_SUITE_P(All, InitFile, testing::Values("environ", "maps", "mem", "auxv", "fd", "fdinfo", "map_files"),
                         [](const auto& test) { return std::string(test.param); });

class InitLink : public testing::TestWithParam<const char*> {};

/// Magic links lead to the process's root, directory and program.
TEST_P(InitLink, CannotBeFollowed) {
  expectOnlyStoppedBy(kHiding, {.verb = {"stat", std::string("/proc/1/") + GetParam()}});
}

INSTANTIATE_TEST_SUITE_P(All, InitLink, testing::Values("root", "cwd", "exe"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Init, DoesNotShowTheCallersEnvironment) {
  const std::string secret = uniqueWord("secret");
  const Attack attack{.verb = {"read", "/proc/1/environ"}, .how = {.env = {{"CALLER_TOKEN", secret}}}};
  const RunOutput output = inSandbox(attack);
  EXPECT_TRUE(contained(output));
  EXPECT_EQ(output.out.find(secret), std::string::npos);
  if (!mayWeaken()) return;
  EXPECT_NE(weakened(kHiding, attack).out.find(secret), std::string::npos);
}

TEST(Init, HasMemoryThatCannotBeWritten) { expectOnlyStoppedBy(kHiding, {.verb = {"open", "/proc/1/mem", "write"}}); }

TEST(Init, CannotBeTraced) {
  CONFORMS("R-PROCESS-1");
  expectOnlyStoppedBy("seccomp,landlock,hidden-init", {.verb = {"trace", "1"}});
}

TEST(Init, HasMemoryThatCannotBeReadByCall) {
  expectOnlyStoppedBy("seccomp,landlock,hidden-init", {.verb = {"read-memory", "1"}});
}

TEST(Init, HasDescriptorsThatCannotBeCopied) {
  expectOnlyStoppedBy("seccomp,landlock,hidden-init", {.verb = {"borrow-descriptor", "1"}});
}

TEST(Init, HasLimitsThatCannotBeChanged) { expectOnlyStoppedBy("seccomp", {.verb = {"limit", "1"}}); }

/// No second half: that pid 1 survives signals is the kernel's rule for every pid namespace.
TEST(Init, SurvivesEverySignal) {
  CONFORMS("R-PROCESS-10");
  for (const int signal : {SIGSTOP, SIGKILL, SIGTERM, SIGTSTP, SIGSEGV, SIGCHLD}) {
    EXPECT_TRUE(contained(inSandbox({.verb = {"signal-init", std::to_string(signal)}}))) << "signal " << signal;
  }
  EXPECT_TRUE(contained(inSandbox({.verb = {"kill-all"}})));
}

TEST(Init, IsInvisible) {
  const Attack attack{.verb = {"list-processes"}};
  const std::string seen = inSandbox(attack).out;
  EXPECT_TRUE(std::regex_match(seen, std::regex("done: ([2-9])\n"))) << seen;  // only the payload itself
  if (!mayWeaken()) return;
  const std::string open = weakened("hidden-processes", attack).out;
  EXPECT_TRUE(std::regex_match(open, std::regex("done: 1 ([2-9])\n"))) << open;
}

/// Rescheduling pid 1 would slow the reaping of the payload's tree.
TEST(Init, CannotBeRescheduled) {
  EXPECT_TRUE(contained(inSandbox({.verb = {"renice", "1"}})));
  EXPECT_TRUE(contained(inSandbox({.verb = {"make-idle", "1"}})));
}

}  // namespace
}  // namespace caisson::test
