// How runs end: by timeout, by signals, with all their processes.
#include <gtest/gtest.h>

#include <csignal>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Lifetime : public SandboxTest {
 protected:
  /// A script that starts daemons in every way a shell can, each findable by `marker`.
  static std::string daemons(const std::string& marker) {
    return "sleeper() { exec -a " + marker +
           " sleep 300; }; "
           "sleeper & "
           "(sleeper &) "
           "; (trap '' TERM HUP INT; setsid bash -c 'trap \"\" TERM HUP INT; (exec -a " +
           marker +
           " sleep 300) & disown' &) ; "
           "nohup setsid bash -c 'exec -a " +
           marker +
           " sleep 300' > /dev/null 2>&1 < /dev/null & "
           "sleep 0.3; ";
  }

  /// Starts a script that touches /workspace/ready when its traps are set, waits for that, and signals caisson.
  std::optional<int> statusAfter(int signal_number, const std::string& text, milliseconds timeout = seconds(20)) const {
    BackgroundProgram program(
        {caissonBinary(), "run", "--workspace", ".:rw", "--timeout", "60s", "--", "bash", "-c", text},
        {.cwd = workspace.path()});
    if (!eventually([&] { return exists(workspace / "ready"); }, seconds(20))) return std::nullopt;
    unlink((workspace / "ready").c_str());
    program.signal(signal_number);
    return program.wait(timeout);
  }
};

TEST_F(Lifetime, TheTimeoutKillsTheWholeTree) {
  CONFORMS("R-PROCESS-3");
  const std::string marker = uniqueMarker();
  const RunOutput output = script(daemons(marker) + "echo started; sleep 300", {"--json", "--timeout", "1s"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_EQ(output.json()["stdout"], "started\n");
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(2)));
  EXPECT_LT(output.duration, seconds(10));
}

TEST_F(Lifetime, TheEndOfTheProgramEndsTheWholeTree) {
  CONFORMS("R-PROCESS-2");
  const std::string marker = uniqueMarker();
  const RunOutput output = script(daemons(marker) + "exit 6");
  EXPECT_EQ(output.exit_status, 6) << output.describe();
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(2)));
  EXPECT_LT(output.duration, seconds(10)) << "daemons that hold the output open must not delay the end";
}

TEST_F(Lifetime, TheTimeoutHoldsAtLevelProcessToo) {
  CONFORMS("R-LEVEL-5");
  const std::string marker = uniqueMarker();
  const RunOutput output = script(daemons(marker) + "sleep 300", {"--level", "process", "--json", "--timeout", "1s"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_EQ(output.json()["limit"], "time");
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(2)));
}

TEST_F(Lifetime, TimeoutKillsAProgramThatIgnoresSignalsOrIsStopped) {
  CONFORMS("R-PROCESS-3");
  EXPECT_EQ(script("trap '' TERM INT HUP QUIT; while :; do sleep 1; done", {"--timeout", "500ms"}).exit_status, 124);
  EXPECT_EQ(script("kill -STOP $$", {"--timeout", "500ms"}, {.timeout = seconds(20)}).exit_status, 124);
}

TEST_F(Lifetime, ZombiesAreReaped) {
  const RunOutput output =
      script("for i in $(seq 50); do (sleep 0.02 &) ; done; sleep 0.5; cat /proc/[0-9]*/stat | grep -c ') Z '");
  EXPECT_EQ(output.out, "0\n") << output.describe();
}

TEST_F(Lifetime, SignalsReachTheProgram) {
  CONFORMS("R-PROCESS-10");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    const std::string text = "trap 'exit 9' " + std::to_string(number) + "; touch ready; while :; do sleep 0.05; done";
    EXPECT_EQ(statusAfter(number, text), 9) << "signal " << number;
  }
}

TEST_F(Lifetime, SignalsKillAProgramWithoutHandlers) {
  CONFORMS("R-PROCESS-10");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const auto status =
        statusAfter(number, ": > ready; exec sleep 60");  // no child: a shell that waits for one may swallow SIGINT
    EXPECT_EQ(status, 128 + number) << "signal " << number;
  }
}

TEST_F(Lifetime, ProgramThatIgnoresTerminationIsKilledAfterAGracePeriod) {
  const auto status = statusAfter(SIGTERM, "trap '' TERM; touch ready; while :; do sleep 0.1; done", seconds(30));
  ASSERT_TRUE(status.has_value()) << "still running half a minute after SIGTERM";
  EXPECT_NE(*status, 0);
}

TEST_F(Lifetime, AnInterruptedRunLeavesNoProcess) {
  CONFORMS("R-PROCESS-10");
  const std::string marker = uniqueMarker();
  EXPECT_EQ(statusAfter(SIGTERM, daemons(marker) + "touch ready; wait; sleep 60"), 128 + SIGTERM);
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(2)));
}

TEST_F(Lifetime, ProcessesOutsideAreInvisible) {
  const RunOutput output = script(
      "ps -e -o pid= | wc -l; ls -d /proc/[0-9]* | wc -l; cat /proc/1/cmdline /proc/1/environ /proc/1/maps 2>&1 | "
      "grep -c -i -E 'caisson run|SECRET'; kill -0 1 && kill -STOP 1 && kill -KILL 1; echo alive");
  EXPECT_TRUE(output.out.ends_with("0\nalive\n")) << output.describe();
  EXPECT_LT(std::stoi(output.out), 8) << output.describe();
}

TEST_F(Lifetime, ProcessLimitAppliesInside) {
  CONFORMS("R-PROCESS-4");
  const RunOutput output = script("for i in $(seq 40); do sleep 5 & done; echo went on",
                                  {"--pids", "20", "--timeout", "10s"}, {.timeout = seconds(30)});
  EXPECT_TRUE(contains(output.err, "Resource temporarily unavailable")) << output.describe();
}

TEST_F(Lifetime, CpuTimeOfASpinningTreeIsReported) {
  CONFORMS("R-LIMIT-11");
  // The kernel ends the loop after a second of processor time, however busy the machine is. It counts ticks there, so
  // the exact time may be less.
  const json result = script("(ulimit -t 1; exec bash -c 'while :; do :; done'); exit 0", {"--json"}).json();
  EXPECT_GT(result["usage"]["user_cpu_ms"].get<double>() + result["usage"]["system_cpu_ms"].get<double>(), 300)
      << result.dump();
}

}  // namespace
}  // namespace caisson::test
