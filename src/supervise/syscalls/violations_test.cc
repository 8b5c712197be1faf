#include "supervise/syscalls/violations.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/syscall_names.h"
#include "plan/syscalls.h"

namespace caisson::supervise {
namespace {

using Time = Violations::Time;
using std::chrono::seconds;

plan::Plan builtinPlan() {
  plan::Plan plan;
  plan.builtin_syscalls = true;
  plan.command = {"program"};
  return plan;
}

Attempt attemptAt(std::string_view call, std::initializer_list<std::uint64_t> arguments = {}) {
  Attempt attempt{.id = 1, .pid = 42, .architecture = plan::nativeArchitecture(), .number = *syscallNumber(call)};
  std::ranges::copy(arguments, attempt.arguments);
  return attempt;
}

std::string program() { return "/usr/bin/program"; }

TEST(Violations, AreRecordedAsTheKernelReportsThem) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  const Verdict verdict = book.judge(attemptAt("mount", {1, 2, 3, 4, 5}), Time(), program);
  EXPECT_EQ(verdict.error, EPERM);
  EXPECT_FALSE(verdict.end);
  RunResult result;
  book.report(result);
  ASSERT_EQ(result.violations.size(), 1U);
  const Violation& seen = result.violations[0];
  EXPECT_EQ(seen.syscall, "mount");
  EXPECT_EQ(seen.number, *syscallNumber("mount"));
  EXPECT_EQ(seen.arguments[4], 5U);
  EXPECT_EQ(seen.pid, 42);
  EXPECT_EQ(seen.program, "/usr/bin/program");
  EXPECT_EQ(seen.severity, "HIGH");
  EXPECT_EQ(seen.indicator, "FILESYSTEM");
  EXPECT_EQ(seen.count, 1U);
  ASSERT_EQ(result.denials.size(), 1U);
  EXPECT_FALSE(result.denials[0].remedy.empty());
}

TEST(Violations, GetTheErrnoThatTheFilterNames) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  EXPECT_EQ(book.judge(attemptAt("socket", {AF_PACKET, SOCK_DGRAM, 0}), Time(), program).error, EAFNOSUPPORT);
  EXPECT_EQ(book.judge(attemptAt("socket", {AF_INET, SOCK_RAW, 1}), Time(), program).error, EPERM);
}

TEST(Violations, OneCriticalCallEndsTheSandbox) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  EXPECT_TRUE(book.judge(attemptAt("open_by_handle_at"), Time(), program).end);
  ASSERT_TRUE(book.escape());
  EXPECT_EQ(book.escape()->severity, "CRITICAL");
  EXPECT_EQ(book.escape()->indicator, "FILESYSTEM");
}

TEST(Violations, CommandsOfOneSandboxShareTheWindow) {
  const plan::Plan plan = builtinPlan();
  const auto high = std::make_shared<HighAttempts>();
  Violations first(plan, high), second(plan, high), apart(plan);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(first.judge(attemptAt("unshare"), Time(seconds(i)), program).end) << i;
  EXPECT_FALSE(apart.judge(attemptAt("unshare"), Time(seconds(10)), program).end);
  EXPECT_TRUE(second.judge(attemptAt("setns"), Time(seconds(11)), program).end);
  EXPECT_FALSE(first.judge(attemptAt("unshare"), Time(seconds(12)), program).end) << "only one of them is blamed";
  EXPECT_FALSE(first.escape());
}

TEST(Violations, TenGraveOnesWithinAMinuteEndTheSandbox) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(book.judge(attemptAt("unshare"), Time(seconds(i)), program).end) << i;
  EXPECT_TRUE(book.judge(attemptAt("setns"), Time(seconds(59)), program).end);
}

TEST(Violations, GraveOnesFarApartDoNot) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(book.judge(attemptAt("unshare"), Time(seconds(i * 7)), program).end) << i;
}

TEST(Violations, FollowThePolicysTable) {
  plan::Plan plan = builtinPlan();
  plan.severities.critical = {"perf_event_open"};
  plan.severities.high = {"keyctl"};
  plan.severities.high_limit = 2;
  Violations book(plan);
  EXPECT_FALSE(book.judge(attemptAt("bpf"), Time(), program).end);
  EXPECT_FALSE(book.judge(attemptAt("keyctl"), Time(), program).end);
  EXPECT_TRUE(book.judge(attemptAt("keyctl"), Time(), program).end);
  Violations other(plan);
  EXPECT_TRUE(other.judge(attemptAt("perf_event_open"), Time(), program).end);
}

TEST(Violations, ProbesAreOnlyCounted) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  int logged = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Verdict verdict = book.judge(attemptAt("perf_event_open"), Time(), program);
    EXPECT_FALSE(verdict.end);
    logged += verdict.worth_logging ? 1 : 0;
  }
  EXPECT_EQ(logged, 17) << "1, 2, 4 ... 65536";
  RunResult result;
  book.report(result);
  ASSERT_EQ(result.violations.size(), 1U);
  EXPECT_EQ(result.violations[0].count, 100'000U);
  EXPECT_TRUE(result.denials[0].probe);
}

TEST(Violations, TakeBoundedMemoryWhateverTheArguments) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  int asked = 0;
  const auto counting = [&] { return ++asked, program(); };
  for (std::uint64_t i = 0; i < 10'000; ++i) (void)book.judge(attemptAt("userfaultfd", {i}), Time(), counting);
  RunResult result;
  book.report(result);
  EXPECT_LE(result.violations.size(), 8U);
  EXPECT_LE(asked, 8);
  std::uint64_t total = 0;
  for (const Violation& violation : result.violations) total += violation.count;
  EXPECT_EQ(total, 10'000U);
  ASSERT_EQ(result.denials.size(), 1U);
  EXPECT_EQ(result.denials[0].count, 10'000U);
}

TEST(Violations, UnknownNumbersTakeBoundedMemoryToo) {
  const plan::Plan plan = builtinPlan();
  Violations log(plan);
  Attempt attempt = attemptAt("getpid");
  for (int number = 5000; number < 15'000; ++number) {
    attempt.number = number;
    EXPECT_EQ(log.judge(attempt, Time(), program).error, ENOSYS);
  }
  RunResult result;
  log.report(result);
  EXPECT_LE(result.violations.size(), 8U);
  std::uint64_t total = 0;
  for (const Violation& violation : result.violations) total += violation.count;
  EXPECT_EQ(total, 10'000U);
  EXPECT_EQ(result.violations[0].syscall, "call 5000");
  EXPECT_EQ(result.violations[0].severity, "LOW");
  EXPECT_EQ(result.denials[0].rule, "syscalls.allow");
}

TEST(Violations, UnusedRegistersNeitherSplitAttemptsNorAreReported) {
  const plan::Plan plan = builtinPlan();
  Violations log(plan);
  for (std::uint64_t left_over = 1; left_over <= 3; ++left_over) {
    (void)log.judge(attemptAt("keyctl", {99, 0, 0, 0, 7, left_over}), Time(), program);
    (void)log.judge(attemptAt("setns", {3, 4, left_over, left_over}), Time(), program);
  }
  RunResult result;
  log.report(result);
  ASSERT_EQ(result.violations.size(), 2U);
  for (const Violation& violation : result.violations) EXPECT_EQ(violation.count, 3U) << violation.syscall;
  EXPECT_TRUE(std::ranges::equal(result.violations[0].arguments, std::to_array<std::uint64_t>({99, 0, 0, 0, 7, 0})));
  EXPECT_TRUE(std::ranges::equal(result.violations[1].arguments, std::to_array<std::uint64_t>({3, 4, 0, 0, 0, 0})));
}

TEST(Violations, OwnArgumentsKeepAttemptsApart) {
  const plan::Plan plan = builtinPlan();
  Violations log(plan);
  (void)log.judge(attemptAt("keyctl", {99, 0, 0, 0, 1}), Time(), program);
  (void)log.judge(attemptAt("keyctl", {99, 0, 0, 0, 2}), Time(), program);
  RunResult result;
  log.report(result);
  EXPECT_EQ(result.violations.size(), 2U);
}

TEST(Violations, CallOfForeignArchitectureKeepsAllRegisters) {
  const plan::Plan plan = builtinPlan();
  Violations log(plan);
  Attempt foreign = attemptAt("getpid", {1, 2, 3, 4, 5, 6});
  foreign.architecture = AUDIT_ARCH_I386;
  (void)log.judge(foreign, Time(), program);
  EXPECT_NE(log.escape()->reason.find("(0x1, 0x2, 0x3, 0x4, 0x5, 0x6)"), std::string::npos) << log.escape()->reason;
  RunResult result;
  log.report(result);
  EXPECT_EQ(result.violations[0].arguments[5], 6U);
}

TEST(Violations, EscapeReasonShowsOnlyOwnArguments) {
  const plan::Plan plan = builtinPlan();
  Violations log(plan);
  EXPECT_TRUE(log.judge(attemptAt("bpf", {99, 1, 2, 77, 78, 79}), Time(), program).end);
  EXPECT_NE(log.escape()->reason.find("bpf(0x63, 0x1, 0x2) by"), std::string::npos) << log.escape()->reason;
}

TEST(Violations, ForeignArchitecturesAreAlwaysCritical) {
  plan::Plan plan = builtinPlan();
  plan.severities.critical.emplace();
  Violations book(plan);
  Attempt foreign = attemptAt("getpid");
  foreign.architecture = AUDIT_ARCH_I386;
  EXPECT_TRUE(book.judge(foreign, Time(), program).end);
  RunResult result;
  book.report(result);
  EXPECT_EQ(result.violations[0].syscall, "i386 call " + std::to_string(foreign.number));
  Violations with_loader(plan);
  foreign.foreign_program = true;
  const Verdict verdict = with_loader.judge(foreign, Time(), program);
  EXPECT_FALSE(verdict.end) << "a program of another architecture cannot run, but is not an attack";
  EXPECT_TRUE(verdict.end_process);
#if defined(__x86_64__)
  Violations other(plan);
  Attempt x32 = attemptAt("getpid");
  x32.number |= 0x40000000;
  EXPECT_TRUE(other.judge(x32, Time(), program).end);
#endif
}

TEST(Violations, PtraceTracemeIsNotCritical) {
  const plan::Plan plan = builtinPlan();
  Violations book(plan);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(book.judge(attemptAt("ptrace", {0}), Time(), program).end);
  bool ended = false;
  for (int i = 0; i < 10; ++i) ended = book.judge(attemptAt("ptrace", {16, 1}), Time(), program).end;
  EXPECT_TRUE(ended);
}

TEST(Denials, NameTheRuleThatAPolicyCanChange) {
  policy::Policy policy;
  policy.process.allow_fork = false;
  policy.syscalls.mode = policy::SyscallMode::denylist;
  policy.syscalls.names = {"getrandom"};
  plan::Plan plan;
  plan.command = {"program"};
  plan.no_fork = true;
  plan.syscalls = *plan::filterForFull(policy, {});
  Violations book(plan);
  (void)book.judge(attemptAt("clone", {SIGCHLD}), Time(), program);
  (void)book.judge(attemptAt("clone", {CLONE_NEWUSER}), Time(), program);
  (void)book.judge(attemptAt("getrandom"), Time(), program);
  RunResult result;
  book.report(result);
  ASSERT_EQ(result.denials.size(), 3U);
  EXPECT_EQ(result.denials[0].rule, "process.allow_fork");
  EXPECT_NE(result.denials[1].rule, "process.allow_fork");
  EXPECT_EQ(result.denials[2].rule, "syscalls.names");
}

}  // namespace
}  // namespace caisson::supervise
