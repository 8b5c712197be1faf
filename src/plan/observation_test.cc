#include "plan/observation.h"

#include <sched.h>
#include <signal.h>

#include "plan/syscall_filter_testing.h"

namespace caisson::plan {
namespace {

constexpr std::uint32_t kShown = SECCOMP_RET_USER_NOTIF | 0x8000;

class Observation : public OnEachArchitecture {
 protected:
  static Filter observed(const Policy& policy, ExecToken token = {}) {
    auto filter = filterForFull(policy, token, architecture());
    EXPECT_TRUE(filter);
    observeFiles(*filter);
    observeNetwork(*filter);
    return compiled(filter);
  }
  static bool isWatched(int number) {
    const std::string_view name = syscallName(number, architecture());
    return std::ranges::any_of(observedFileCalls(), [&](const ObservedCall& call) { return call.name == name; }) ||
           std::ranges::find(observedNetworkCalls(), name) != observedNetworkCalls().end();
  }
};
INSTANTIATE_TEST_SUITE_P(, Observation, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

/// The invariant of learning: a call is reported only where it would have been allowed, and all denials are the same.
/// Checked for every number and for arguments that any rule tests.
TEST_P(Observation, ShowsOnlyWhatIsAllowedAndChangesNoRefusal) {
  const std::uint64_t values[] = {0,     1,          2,          040,    0100,   01000, 04000,
                                  06777, 0x10000000, 0x7e020080, 0x5412, 0x541c, ~0ULL};
  for (const std::string profile : {"bash", "strict", "cargo"}) {
    const Policy policy = *policy::builtin(profile);
    const Filter plain = programFor(policy, {1, 2});
    const Filter shown = observed(policy, {1, 2});
    std::size_t differences = 0;
    for (int number = 0; number < 600; ++number) {
      for (const std::uint64_t first : values) {
        for (const std::uint64_t second : values) {
          const std::uint64_t arguments[6] = {first, second, second, first, second, first};
          const std::uint32_t before = evaluateNumber(plain, number, arguments);
          const std::uint32_t after = evaluateNumber(shown, number, arguments);
          if (before == after) continue;
          ++differences;
          ASSERT_EQ(before, kReturnAllow) << profile << " " << syscallName(number, architecture());
          ASSERT_EQ(after, kShown) << profile << " " << syscallName(number, architecture());
          ASSERT_TRUE(isWatched(number)) << profile << " " << syscallName(number, architecture());
        }
      }
    }
    EXPECT_GT(differences, 1000U) << profile;
    const std::uint64_t none[6] = {};
    EXPECT_EQ(evaluate(shown, architectureNumber() ^ 1, 0, none), evaluate(plain, architectureNumber() ^ 1, 0, none));
  }
}

/// The supervisor does not listen yet when the payload's program is started.
TEST_P(Observation, OmitsTheStartOfThePayload) {
  const Filter shown = observed(*policy::builtin("bash"));
  Arguments own;
  own.values[kOwnExecArgument] = kOwnExecMark;
  EXPECT_EQ(evaluateCall(shown, "execve", own), kReturnAllow);
  EXPECT_EQ(evaluateCall(shown, "execve"), kShown);
  const Filter strict = observed(*policy::builtin("strict"), {7, 8});
  Arguments token;
  token.values[0] = 7ULL << 32;
  token.values[4] = 8ULL << 32;
  EXPECT_EQ(evaluateCall(strict, "execveat", token), kReturnAllow);
  EXPECT_EQ(evaluateCall(strict, "execve", own), reported(EPERM)) << "the mark opens nothing where execs are refused";
}

Arguments cloneWith(std::uint64_t flags) {
  Arguments arguments;
  arguments.values[0] = flags;
  return arguments;
}
constexpr std::uint64_t kThreadFlags = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;

TEST_P(Observation, OfProcessesShowsExecsAndSignalsButNoForksAndThreads) {
  auto filter = filterForFull(*policy::builtin("bash"), {}, architecture());
  ASSERT_TRUE(filter);
  const std::size_t allowed = filter->allowed();
  observeProcesses(*filter);
  EXPECT_EQ(filter->allowed(), allowed);
  const auto program = compile(*filter);
  ASSERT_TRUE(program);
  const Arguments thread = cloneWith(kThreadFlags);
  EXPECT_EQ(evaluateCall(*program, "clone", thread), kReturnAllow);
  const Arguments child = cloneWith(SIGCHLD);
  EXPECT_EQ(evaluateCall(*program, "clone", child), kReturnAllow) << "a signal would make it return EINTR";
  const Arguments own_namespace = cloneWith(CLONE_NEWUSER | CLONE_THREAD);
  EXPECT_EQ(evaluateCall(*program, "clone", own_namespace), reported(EPERM));
  EXPECT_EQ(evaluateCall(*program, "execve"), kShown);
  Arguments signal;
  signal.values[0] = 5;
  EXPECT_EQ(evaluateCall(*program, "kill", signal), kReturnAllow) << "signal 0";
  signal.values[1] = SIGTERM;
  EXPECT_EQ(evaluateCall(*program, "kill", signal), kShown);
  EXPECT_EQ(evaluateCall(*program, "tgkill", signal), kReturnAllow);
}

TEST_P(Observation, OfTasksShowsThreadsToo) {
  auto filter = filterForFull(*policy::builtin("bash"), {}, architecture());
  ASSERT_TRUE(filter);
  observeProcesses(*filter);
  observeTasks(*filter);
  const auto program = compile(*filter);
  ASSERT_TRUE(program);
  const Arguments thread = cloneWith(kThreadFlags);
  EXPECT_EQ(evaluateCall(*program, "clone", thread), kShown);
  EXPECT_TRUE(createsThread("clone", thread.values));
  const Arguments child = cloneWith(SIGCHLD);
  EXPECT_EQ(evaluateCall(*program, "clone", child), kShown);
  EXPECT_FALSE(createsThread("clone", child.values));
  const Arguments own_namespace = cloneWith(CLONE_NEWUSER | CLONE_THREAD);
  EXPECT_EQ(evaluateCall(*program, "clone", own_namespace), reported(EPERM));
}

/// Where forks are denied, threads stay allowed and unreported.
TEST_P(Observation, OfProcessesOpensNothingThatThePolicyDenies) {
  Policy policy = *policy::builtin("bash");
  policy.process.allow_fork = policy.process.allow_exec = false;
  auto filter = filterForFull(policy, {7, 8}, architecture());
  ASSERT_TRUE(filter);
  observeProcesses(*filter);
  const auto program = compile(*filter);
  ASSERT_TRUE(program);
  const Arguments thread = cloneWith(kThreadFlags);
  EXPECT_EQ(evaluateCall(*program, "clone", thread), kReturnAllow);
  const Arguments child = cloneWith(SIGCHLD);
  EXPECT_EQ(evaluateCall(*program, "clone", child), reported(EPERM));
  EXPECT_EQ(evaluateCall(*program, "execve"), reported(EPERM));
}

TEST_P(Observation, HasThePathArgumentOfEveryCall) {
  for (const ObservedCall& call : observedFileCalls()) {
    EXPECT_GE(call.first.path, 0) << call.name;
    EXPECT_LT(call.first.path, 6) << call.name;
    EXPECT_LT(call.first.directory, call.first.path) << call.name;
  }
}

}  // namespace
}  // namespace caisson::plan
