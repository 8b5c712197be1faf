#include "cli/result/notices.h"

#include <gtest/gtest.h>

#include <csignal>

namespace caisson::cli {
namespace {

RunResult exited(int code) {
  RunResult result;
  result.outcome = OutcomeKind::exited;
  result.exit_code = code;
  return result;
}

TEST(Notices, AreEmptyAfterAPlainSuccess) { EXPECT_TRUE(noticesFor(exited(0), true).empty()); }

TEST(Notices, NameTheLimitAndTheFlagThatRaisesIt) {
  RunResult result;
  result.outcome = OutcomeKind::limit;
  result.limit = Limit::memory;
  EXPECT_EQ(noticesFor(result, false), std::vector<std::string>{"ended by the memory limit; raise it with --memory"});
}

TEST(Notices, ReportDiscardedChangesAlsoAfterSuccess) {
  RunResult result = exited(0);
  result.notices = {"3 changed files were discarded"};
  EXPECT_EQ(noticesFor(result, false), result.notices);
}

TEST(Notices, ShowWeakenedProtectionsOnlyOnATerminal) {
  RunResult result = exited(0);
  result.warnings = {"no cgroup"};
  EXPECT_TRUE(noticesFor(result, false).empty());
  EXPECT_EQ(noticesFor(result, true), std::vector<std::string>{"warning: no cgroup"});
}

TEST(Notices, ShowAFewDenialsAndCountTheRest) {
  RunResult result = exited(1);
  result.denials.assign(
      100, Denial{.rule = "filesystem.denied", .object = "/etc/shadow", .operation = "open", .remedy = "no remedy"});
  const auto lines = noticesFor(result, false);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[0], "denied: open: /etc/shadow (filesystem.denied); no remedy");
  EXPECT_EQ(lines[5], "and 95 more; --json lists them all");
  result.exit_code = 0;
  EXPECT_EQ(noticesFor(result, false).size(), 6U) << "a refusal is told also when the program went on";
}

TEST(Notices, DoNotCallAFileDeniedThatIsStillThere) {
  RunResult result = exited(0);
  result.denials = {{.rule = "r", .object = ".envrc", .operation = std::string(kNotMoved), .remedy = "m"}};
  EXPECT_EQ(noticesFor(result, false), std::vector<std::string>{"not moved: .envrc (r); m"});
}

TEST(Notices, OmitProbesOfASuccessfulProgram) {
  RunResult result = exited(0);
  result.denials = {
      {.rule = "r", .object = "perf_event_open", .operation = "o", .remedy = "m", .count = 3, .probe = true}};
  EXPECT_TRUE(noticesFor(result, false).empty());
  result.exit_code = 1;
  EXPECT_EQ(noticesFor(result, false), std::vector<std::string>{"denied: o: perf_event_open, 3 times (r); m"});
}

TEST(Notices, ReportALimitOnce) {
  RunResult result;
  result.outcome = OutcomeKind::limit;
  result.limit = Limit::memory;
  result.denials = {{.rule = "resources.memory", .object = "x", .operation = "use memory", .remedy = "--memory"}};
  EXPECT_EQ(noticesFor(result, false).size(), 1U);
}

TEST(Notices, NameASignalUnlessTheUserSentIt) {
  RunResult result;
  result.outcome = OutcomeKind::signaled;
  result.signal = SIGSEGV;
  EXPECT_EQ(noticesFor(result, false), std::vector<std::string>{"ended by signal 11 (SIGSEGV)"});
  result.signal = SIGINT;
  EXPECT_TRUE(noticesFor(result, false).empty());
}

}  // namespace
}  // namespace caisson::cli
