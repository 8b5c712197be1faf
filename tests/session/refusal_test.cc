// Refused system calls of a session's commands: seen, graded, on record; an escape attempt ends everything in the
// session, and what tried it does not run again (SPEC S2 to S4).
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/syscall_names.h"
#include "functional/session.h"

namespace caisson::test {
namespace {

class SessionRefusals : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (!IsSkipped()) requireOrSkip(hasProgram("python3"), "no python3 to call with");
  }
  /// Makes the call `times` times and prints the last answer.
  static std::vector<std::string> calling(const char* name, int times = 1) {
    return {"python3", "-c",
            "import ctypes, os\n"
            "c = ctypes.CDLL(None, use_errno=True)\n"
            "print('before', flush=True)\n"
            "for i in range(" +
                std::to_string(times) + "): r = c.syscall(" + std::to_string(*syscallNumber(name)) +
                ", 99, 0, 0, 0, 0)\n"
                "print(r, os.strerror(ctypes.get_errno()))\n"};
  }
  static RunResult call(Session& session, const char* name, int times = 1) {
    auto result = session.exec({.command = calling(name, times)});
    EXPECT_TRUE(result) << result.error().message();
    return result ? *std::move(result) : RunResult{};
  }
  [[nodiscard]] std::string recorded() const {
    return runProgram({"sh", "-c", "cat " + home_path + "/audit/*.jsonl"}).out;
  }
};

TEST_F(SessionRefusals, AreInTheResultAndOnRecord) {
  Session session = create();
  const RunResult result = call(session, "keyctl", 3);
  EXPECT_EQ(exitStatus(result), 0);
  EXPECT_EQ(result.out.data, "before\n-1 Operation not permitted\n");
  ASSERT_EQ(result.violations.size(), 1U);
  const Violation& seen = result.violations.front();
  EXPECT_EQ(seen.syscall, "keyctl");
  EXPECT_EQ(seen.arguments[0], 99U);
  EXPECT_EQ(seen.count, 3U);
  EXPECT_EQ(seen.severity, "HIGH");
  EXPECT_NE(seen.program.find("python3"), std::string::npos) << seen.program;
  EXPECT_EQ(result.denials.size(), 1U);
  EXPECT_NE(recorded().find("\"event\":\"syscall_blocked\""), std::string::npos);
  EXPECT_EQ(result.layers.at("seccomp_notify"), "on");
  const RunResult next = exec(session, "echo next");
  EXPECT_EQ(next.out.data, "next\n");
  EXPECT_TRUE(next.violations.empty()) << "each command has a book of its own";
}

TEST_F(SessionRefusals, OneCriticalAttemptEndsEverythingInTheSession) {
  Session session = create();
  output(session, "echo work > work; (setsid sleep 1000 > /dev/null 2>&1 &)");
  const auto beside = session.start({.command = {"sleep", "1000"}});
  ASSERT_TRUE(beside) << beside.error().message();
  const RunResult result = call(session, "bpf");
  EXPECT_EQ(result.outcome, OutcomeKind::denied);
  EXPECT_EQ(exitStatus(result), 125);
  EXPECT_EQ(result.out.data, "before\n") << "it did not live to see an answer";
  ASSERT_TRUE(result.escape);
  EXPECT_EQ(result.escape->severity, "CRITICAL");
  EXPECT_NE(result.escape->rollback.find("kept"), std::string::npos) << result.escape->rollback;
  struct stat status{};
  EXPECT_EQ(::stat((result.escape->trace + "/events.jsonl").c_str(), &status), 0) << result.escape->trace;
  EXPECT_NE(recorded().find("\"event\":\"escape_attempt\""), std::string::npos);
  const auto ended = session.wait(*beside, 10);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_FALSE(ended->running) << "what ran beside it was ended as well";
  EXPECT_EQ(output(session, "set -- /proc/[0-9]*; echo $#; cat work"), "1\nwork\n")
      << "only the shell is left, and the work is kept";
  const auto again = session.exec({.command = calling("bpf")});
  ASSERT_FALSE(again) << "it is in quarantine";
  EXPECT_NE(again.error().message().find("quarantine"), std::string::npos) << again.error().message();
}

TEST_F(SessionRefusals, TenGraveOnesWithinAMinuteAreAnAttempt) {
  Session session = create();
  const RunResult result = call(session, "unshare", 30);
  EXPECT_EQ(result.outcome, OutcomeKind::denied);
  ASSERT_TRUE(result.escape);
  EXPECT_EQ(result.escape->severity, "HIGH");
  ASSERT_FALSE(result.violations.empty());
  EXPECT_EQ(result.violations.front().count, 10U);
}

/// Nobody listens to it any more: refused all the same, and at once.
TEST_F(SessionRefusals, WhatACommandLeftBehindIsStillRefused) {
  Session session = create();
  ASSERT_TRUE(session.write("late.py", calling("bpf").at(2)));
  output(session, "(setsid sh -c 'sleep 0.3; python3 late.py > answer.new; mv answer.new answer' > /dev/null 2>&1 &)");
  for (int i = 0; i < 400 && !session.read("answer"); ++i) ::usleep(25'000);
  const auto answer = session.read("answer");
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->data.substr(0, 10), "before\n-1 ") << answer->data;
}

TEST_F(SessionRefusals, AreInTheCommandLinesResultToo) {
  Session session = create();
  std::vector<std::string> line{"exec", session.id(), "--json", "--"};
  for (const std::string& word : calling("keyctl")) line.push_back(word);
  const RunOutput out = cli(line);
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(out.json()["violations"].size(), 1U) << out.describe();
  EXPECT_EQ(out.json()["violations"][0]["syscall"], "keyctl");
}

}  // namespace
}  // namespace caisson::test
