// Blocked system calls of a session's commands: graded and recorded; an escape attempt kills everything in the session,
// and the command does not run again.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/syscall_names.h"
#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SessionRefusals : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (!IsSkipped()) requireOrSkip(hasProgram("python3"), "no python3 to call with");
  }
  /// Makes the call `times` times and prints the last result.
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
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000; ++i) {
      if (holds()) return true;
      ::usleep(20'000);
    }
    return false;
  }
  [[nodiscard]] std::string recorded() const {
    return runProgram({"sh", "-c", "cat " + home_path + "/audit/*.jsonl"}).out;
  }
};

TEST_F(SessionRefusals, AreInTheResultAndTheAuditLog) {
  CONFORMS("R-SYSCALL-4");
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
  EXPECT_TRUE(next.violations.empty()) << "each command has a separate list";
}

TEST_F(SessionRefusals, OneCriticalAttemptEndsEverythingInTheSession) {
  CONFORMS("R-SYSCALL-7", "R-SYSCALL-10");
  Session session = create();
  output(session, "echo work > work");
  output(session, "(setsid sleep 1000 > /dev/null 2>&1 &)");
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

TEST_F(SessionRefusals, TenGraveOnesWithinAMinuteAreAnEscapeAttempt) {
  CONFORMS("R-SYSCALL-5");
  Session session = create();
  const RunResult result = call(session, "unshare", 30);
  EXPECT_EQ(result.outcome, OutcomeKind::denied);
  ASSERT_TRUE(result.escape);
  EXPECT_EQ(result.escape->severity, "HIGH");
  ASSERT_FALSE(result.violations.empty());
  EXPECT_EQ(result.violations.front().count, 10U);
}

TEST_F(SessionRefusals, GraveOnesOfSeveralCommandsAreCountedTogether) {
  CONFORMS("R-SYSCALL-5");
  Session session = create();
  const auto beside = session.start({.command = {"sleep", "1000"}});
  ASSERT_TRUE(beside) << beside.error().message();
  for (int command = 1; command <= 3; ++command) {
    EXPECT_EQ(call(session, "unshare", 3).outcome, OutcomeKind::exited) << command;
  }
  const RunResult result = call(session, "unshare", 3);
  EXPECT_EQ(result.outcome, OutcomeKind::denied);
  EXPECT_EQ(result.out.data, "before\n") << "the tenth attempt was not answered";
  ASSERT_TRUE(result.escape);
  EXPECT_EQ(result.escape->severity, "HIGH");
  EXPECT_NE(result.escape->reason.find("10 grave attempts in this sandbox within 60 s"), std::string::npos)
      << result.escape->reason;
  EXPECT_TRUE(std::ranges::any_of(result.notices, [](const std::string& notice) {
    return notice.find("processes of the session are counted together") != std::string::npos;
  }));
  EXPECT_NE(recorded().find("\"event\":\"escape_attempt\""), std::string::npos);
  const auto ended = session.wait(*beside, 10);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_FALSE(ended->running) << "the sandbox was ended";
  EXPECT_EQ(call(session, "setns", 9).outcome, OutcomeKind::exited) << "a new sandbox starts with none";
}

TEST_F(SessionRefusals, GraveOnesOfALeftBehindProcessCountWithThoseOfTheNextCommand) {
  Session session = create();
  ASSERT_TRUE(session.write("left.py", calling("unshare", 8).at(2) + "import time\ntime.sleep(1000)\n"));
  output(session, "(setsid python3 left.py > left.out 2> /dev/null &)");
  ASSERT_TRUE(eventually([&] { return recorded().find("\"count\":8,") != std::string::npos; }));
  const RunResult result = call(session, "unshare", 5);
  EXPECT_EQ(result.outcome, OutcomeKind::denied);
  ASSERT_TRUE(result.escape);
  ASSERT_FALSE(result.violations.empty());
  EXPECT_EQ(result.violations.front().count, 2U) << "eight and two are ten";
  EXPECT_EQ(output(session, "set -- /proc/[0-9]*; echo $#"), "1\n") << "only the shell is left";
}

TEST_F(SessionRefusals, GraveOnesOfALeftBehindProcessAndEarlierCommandsEndTheSandbox) {
  Session session = create();
  EXPECT_EQ(call(session, "unshare", 8).outcome, OutcomeKind::exited);
  ASSERT_TRUE(session.write("left.py", calling("unshare", 2).at(2)));
  output(session, "(setsid sh -c 'sleep 0.3; python3 left.py > answer.new; mv answer.new answer' > /dev/null 2>&1 &)");
  EXPECT_TRUE(eventually([&] { return recorded().find("\"event\":\"escape_attempt\"") != std::string::npos; }));
  EXPECT_FALSE(session.read("answer")) << "it did not live to see an answer";
}

TEST_F(SessionRefusals, CriticalCallOfALeftBehindProcessEndsTheSandbox) {
  Session session = create();
  ASSERT_TRUE(session.write("late.py", calling("bpf").at(2)));
  output(session, "(setsid sh -c 'sleep 0.3; python3 late.py > answer.new; mv answer.new answer' > /dev/null 2>&1 &)");
  EXPECT_TRUE(eventually([&] { return recorded().find("\"event\":\"escape_attempt\"") != std::string::npos; }));
  EXPECT_FALSE(session.read("answer")) << "it did not live to see an answer";
  EXPECT_EQ(output(session, "set -- /proc/[0-9]*; echo $#"), "1\n") << "only the shell is left";
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

TEST_F(SessionRefusals, OfABackgroundCommandAreInItsStateAndTheAuditLog) {
  Session session = create();
  const auto exec = session.start({.command = calling("keyctl", 3)});
  ASSERT_TRUE(exec) << exec.error().message();
  const auto info = session.wait(*exec, 20);
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->outcome, OutcomeKind::exited);
  EXPECT_EQ(session.logs(*exec, OutputStreamKind::out, 0, 1000)->data, "before\n-1 Operation not permitted\n");
  // Its last count is written when the last process with the filter exited.
  const auto seen = eventually([&] {
    const auto now = session.status(*exec);
    return now && now->violations.size() == 1 && now->violations.front().count == 3;
  });
  EXPECT_TRUE(seen);
  const Violation one = session.status(*exec)->violations.at(0);
  EXPECT_EQ(one.syscall, "keyctl");
  EXPECT_EQ(one.severity, "HIGH");
  EXPECT_EQ(one.arguments[0], 99U);
  EXPECT_NE(one.program.find("python3"), std::string::npos) << one.program;
  EXPECT_NE(recorded().find("\"event\":\"syscall_blocked\""), std::string::npos);
  EXPECT_NE(cli({"ps", session.id()}).out.find("(3 refused calls)"), std::string::npos);
  const auto json = cli({"ps", "--json", session.id()}).json();
  EXPECT_EQ(json["commands"][0]["violations"][0]["syscall"], "keyctl");
  EXPECT_NE(cli({"logs", session.id(), std::to_string(*exec)}).err.find("refused: keyctl (HIGH), 3 times"),
            std::string::npos);
}

TEST_F(SessionRefusals, OneCriticalAttemptInTheBackgroundEndsEverythingInTheSession) {
  Session session = create();
  const auto beside = session.start({.command = {"sleep", "1000"}});
  ASSERT_TRUE(beside) << beside.error().message();
  // Started by a process that exited long ago: the attempt is still reported.
  std::vector<std::string> line{"exec", session.id(), "--background", "--"};
  const std::vector<std::string> attack = calling("open_by_handle_at");
  line.insert(line.end(), attack.begin(), attack.end());
  const auto started = cli(line);
  ASSERT_EQ(started.exit_status, 0) << started.describe();
  const auto exec = static_cast<std::uint32_t>(std::stoul(started.out));
  for (const std::uint32_t one : {exec, *beside}) {
    const auto info = session.wait(one, 20);
    ASSERT_TRUE(info) << info.error().message();
    EXPECT_FALSE(info->running) << one;
    EXPECT_EQ(info->outcome, OutcomeKind::denied) << one;
  }
  EXPECT_EQ(session.logs(exec, OutputStreamKind::out, 0, 1000)->data, "before\n") << "the call was not answered";
  EXPECT_TRUE(eventually([&] { return recorded().find("\"event\":\"escape_attempt\"") != std::string::npos; }));
  EXPECT_TRUE(eventually([&] {
    const auto info = session.status(exec);
    return info && info->violations.size() == 1 && info->violations.front().severity == "CRITICAL";
  }));
  EXPECT_TRUE(eventually([&] { return !session.start({.command = attack}); })) << "what tried it does not run again";
  EXPECT_EQ(output(session, "echo lives"), "lives\n") << "the session itself lives on";
}

TEST_F(SessionRefusals, AttemptInTheBackgroundEndsTheForegroundCommand) {
  Session session = create();
  std::string script = "import ctypes, time\ntime.sleep(1)\nctypes.CDLL(None).syscall(" +
                       std::to_string(*syscallNumber("open_by_handle_at")) + ", 99, 0, 0, 0, 0)\n";
  ASSERT_TRUE(session.start({.command = {"python3", "-c", script}}));
  const auto result = session.exec({.command = {"sleep", "1000"}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->outcome, OutcomeKind::denied);
  ASSERT_TRUE(result->error);
  EXPECT_NE(result->error->message().find("another command of the session"), std::string::npos);
  EXPECT_FALSE(result->escape);
}

}  // namespace
}  // namespace caisson::test
