// What is recorded of processes: those that a payload creates, the signals they send, and reaching the process limit.
#include "functional/audit_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Audit = AuditTest;

TEST_F(Audit, ReachingTheProcessLimitIsRecordedIfTheProgramContinues) {
  CONFORMS("R-LIMIT-8", "R-AUDIT-4");
  // A shell that cannot fork exits, so an inner one tries; the outer one lives until the limit is sampled.
  const RunOutput output = script(
      "(for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done) 2>/dev/null; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
      "exit 0",
      {"--pids", "4", "--json"}, options());
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  const auto reached = events({"--event", "limit_exceeded"});
  ASSERT_EQ(reached.size(), 1U) << output.describe();
  EXPECT_EQ(reached[0]["data"]["limit"], "processes");
}

TEST_F(Audit, ReachingTheProcessLimitIsRecordedForCommandsOfASession) {
  CONFORMS("R-LIMIT-8");
  const std::string id = caisson({"session", "create", "--workspace", ":none", "--pids", "8"}).out;
  const std::string session = id.substr(0, id.find('\n'));
  EXPECT_EQ(caisson({"session", "exec", session, "--", "true"}).exit_status, 0);
  EXPECT_TRUE(events({"--event", "limit_exceeded"}).empty());
  // Where the kernel does not count denied forks, the children must live until they are sampled.
  const char* script =
      "import os, time\n"
      "try:\n"
      "    for i in range(20):\n"
      "        if os.fork() == 0: time.sleep(30)\n"
      "except OSError: time.sleep(1)\n";
  const RunOutput output = caisson({"session", "exec", session, "--json", "--", "python3", "-c", script});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  const auto reached = events({"--event", "limit_exceeded"});
  ASSERT_EQ(reached.size(), 1U) << output.describe();
  EXPECT_EQ(reached[0]["data"]["limit"], "processes");
  EXPECT_EQ(reached[0]["sandbox"], session);
  EXPECT_EQ(output.json()["denials"][0]["rule"], "process.max_processes") << output.describe();
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
}

/// Process creation is monitored and signals are logged, where the policy requests it.
class ProcessAudit : public AuditTest {
 protected:
  static constexpr const char* kScript =
      "trap : USR1; kill -USR1 $$; kill -0 $$; for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done; exit 0";

  [[nodiscard]] std::vector<nlohmann::json> eventsOf(const std::string& sandbox, const std::string& event) const {
    std::vector<nlohmann::json> found;
    for (const auto& one : events({"--event", event}))
      if (one["sandbox"] == sandbox) found.push_back(one["data"]);
    return found;
  }

  void expectRecord(const std::string& sandbox) const {
    std::vector<int> counts;
    nlohmann::json total;
    for (const auto& data : eventsOf(sandbox, "process_created")) {
      if (data["how"] == "total") total = data;
      if (data["how"] != "exec") continue;
      EXPECT_TRUE(data["program"].get<std::string>().ends_with("/true")) << data;
      EXPECT_TRUE(data["parent"].get<std::string>().ends_with("sh")) << data;
      counts.push_back(data["count"]);
    }
    EXPECT_EQ(counts, (std::vector<int>{1, 2, 4, 8}));
    EXPECT_EQ(total["execs"], 9) << total;
    const auto signals = eventsOf(sandbox, "signal_sent");
    ASSERT_EQ(signals.size(), 1U);
    EXPECT_EQ(signals[0]["signal"], "SIGUSR1");
    EXPECT_TRUE(signals[0]["sent_by"].get<std::string>().ends_with("sh")) << signals[0];
  }

  [[nodiscard]] std::string policy(const std::string& level = "full") const {
    return workspace.write("policy.toml",
                           "extends = 'bash'\nisolation.level = '" + level + "'\n[audit]\nprocesses = true\n");
  }
};

TEST_F(ProcessAudit, IsOffUnlessThePolicyRequestsIt) {
  CONFORMS("R-PROCESS-11", "R-AUDIT-7");
  EXPECT_EQ(run({}, {"sh", "-c", kScript}, options()).exit_status, 0);
  EXPECT_TRUE(events({"--event", "process_created"}).empty());
  EXPECT_TRUE(events({"--event", "signal_sent"}).empty());
}

TEST_F(ProcessAudit, RecordsProgramParentAndCountOfARun) {
  CONFORMS("R-PROCESS-11", "R-AUDIT-7");
  for (const std::string level : {"full", "process"}) {
    const RunOutput output =
        run({"--policy", policy(level), "--level", level, "--json"}, {"sh", "-c", kScript}, options());
    ASSERT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_EQ(output.json()["layers"]["process_log"], "on");
    expectRecord(output.json()["sandbox_id"]);
  }
}

TEST_F(ProcessAudit, RecordsSignalsBetweenProcesses) {
  CONFORMS("R-PROCESS-11");
  const RunOutput output = run({"--policy", policy(), "--json"},
                               {"bash", "-c",
                                "sh -c 'trap : USR2; touch ready; while [ ! -e stop ]; do sleep 0.05; done' & "
                                "until [ -e ready ]; do sleep 0.05; done; kill -USR2 $!; touch stop; wait"},
                               options());
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  const auto signals = eventsOf(output.json()["sandbox_id"], "signal_sent");
  ASSERT_EQ(signals.size(), 1U) << output.describe();
  EXPECT_EQ(signals[0]["signal"], "SIGUSR2");
  EXPECT_TRUE(signals[0]["sent_by"].get<std::string>().ends_with("bash")) << "not the one that got it: " << signals[0];
}

TEST_F(ProcessAudit, RecordsCommandsOfASession) {
  CONFORMS("R-AUDIT-7");
  const std::string id = caisson({"session", "create", "--workspace", ":none", "--policy", policy()}).out;
  const std::string session = id.substr(0, id.find('\n'));
  EXPECT_EQ(caisson({"session", "exec", session, "--", "sh", "-c", kScript}).exit_status, 0);
  expectRecord(session);
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
}

/// Fork never fails with EINTR outside a sandbox, and shells treat it as an error.
TEST_F(ProcessAudit, ForksAreNotInterruptedBySignals) {
  const char* forks =
      "import os, signal\n"
      "signal.signal(signal.SIGCHLD, lambda *a: None)\n"
      "signal.siginterrupt(signal.SIGCHLD, True)\n"
      "interrupted = alive = 0\n"
      "for i in range(400):\n"
      "    try:\n"
      "        if os.fork() == 0: os._exit(0)\n"
      "        alive += 1\n"
      "    except InterruptedError: interrupted += 1\n"
      "    while alive and os.waitpid(-1, os.WNOHANG if alive < 20 else 0)[0]: alive -= 1\n"
      "print(interrupted)\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--policy", policy()}, std::vector<std::string>{"--pids", "60"}}) {
    const RunOutput output = run(words, {"python3", "-c", forks}, options());
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_EQ(output.out, "0\n") << words[0];
  }
}

}  // namespace
}  // namespace caisson::test
