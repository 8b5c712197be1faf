// After an escape attempt: the sandbox is killed, the attempt is recorded with a trace, an alert is raised, and the
// command does not run again.
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "functional/audit_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;

class EscapeResponse : public AuditTest {
 protected:
  void SetUp() override {
    AuditTest::SetUp();
    requireOrSkip(systemHas("python3"), "no python3");
    config_.makeDir("caisson", 0700);
  }

  [[nodiscard]] RunOptions owned() const {
    RunOptions how = options();
    how.env["XDG_CONFIG_HOME"] = config_.path();
    return how;
  }

  /// bpf() is CRITICAL: one call kills the sandbox.
  static std::string number() {
#if defined(__x86_64__)
    return "321";
#else
    return "280";
#endif
  }
  static std::vector<std::string> attempt(const std::string& mark = "x") {
    return {"python3", "-c",
            "import ctypes; print('before', flush=True); ctypes.CDLL(None).syscall(" + number() +
                ", 99, 0, 0); print('after " + mark + "')"};
  }

  const TempDir config_;
};

TEST_F(EscapeResponse, EndsTheRunAndKeepsATrace) {
  CONFORMS("R-SYSCALL-7");
  const RunOutput output = run({"--env", "TOKEN=sesame-4711", "--json"}, attempt(), owned());
  const json result = output.json();
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_EQ(result["outcome"], "denied");
  EXPECT_EQ(result["stdout"], "before\n");
  EXPECT_EQ(result["escape"]["severity"], "CRITICAL");
  EXPECT_TRUE(contains(result["escape"]["rollback"], "discarded"));
  const std::string trace = result["escape"]["trace"];
  ASSERT_EQ(trace, home_.path() + "/traces/" + result["sandbox_id"].get<std::string>());
  struct stat status{};
  ASSERT_EQ(::stat(trace.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_TRUE(contains(readFile(trace + "/events.jsonl"), "\"syscall\":\"bpf\""));
  EXPECT_EQ(readFile(trace + "/stdout.tail"), "before\n");
  EXPECT_TRUE(json::accept(readFile(trace + "/plan.json")));
  for (const char* file : {"policy.txt", "plan.json", "events.jsonl", "stdout.tail", "stderr.tail"}) {
    ASSERT_EQ(::stat((trace + "/" + file).c_str(), &status), 0) << file;
    EXPECT_EQ(status.st_mode & 0777, 0600U) << file;
    EXPECT_FALSE(contains(readFile(trace + "/" + file), "sesame-4711")) << file;
  }
}

/// The trace holds the plan that the run carried out; values of variables are not kept there.
TEST_F(EscapeResponse, TraceHoldsThePlanThatPlanPrints) {
  CONFORMS("R-POLICY-19");
  const std::string learned = config_ / "learned.toml";
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"--learn", learned},
      {"--trace", "files"},
      {"--memory", "300M", "--pids", "50", "--timeout", "9s", "--env", "COLOUR=blue"},
      {"--workspace", ".:ro"},
      {"--deny", "secret*"},
      {"--level", "process"},
      {"--net", "proxy", "--allow-host", "a.example"},
      {"--profile", "bash", "--learn", learned, "--force"},
  };
  json without_learning;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<std::string> command = attempt(std::to_string(i));  // an attempt quarantines its command
    std::vector<std::string> words{"plan", "--json"};
    for (const std::string& word : cases[i]) {
      if (word != "--force") words.push_back(word);
    }
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    RunOptions how = owned();
    how.cwd = workspace.path();
    json planned = runCaisson(words, how).json();
    std::vector<std::string> flags = cases[i];
    flags.emplace_back("--json");
    const RunOutput output = run(flags, command, owned());
    ASSERT_TRUE(output.json().contains("escape")) << output.describe();
    json used = json::parse(readFile(output.json()["escape"]["trace"].get<std::string>() + "/plan.json"));
    const auto comparable = [](json& plan) {
      plan.erase("command");                     // the trace has a redacted preview
      if (runsAsRoot()) plan.erase("identity");  // root's payload gets a random user id
      for (auto& variable : plan["environment"]) {
        const std::string text = variable.get<std::string>();
        variable = text.substr(0, text.find('='));
      }
    };
    comparable(planned);
    comparable(used);
    EXPECT_EQ(used, planned) << json::diff(planned, used) << testing::PrintToString(cases[i]);
    if (i == 0) without_learning = planned;
    if (i == 1) {
      EXPECT_NE(planned, without_learning);
    }
  }
}

TEST_F(EscapeResponse, OfARunLeavesTheWorkspaceAsItWas) {
  CONFORMS("R-SYSCALL-8");
  workspace.write("kept", "before\n");
  workspace.openToAll();
  const std::string script =
      "import os; open('kept', 'w').write('changed'); open('new', 'w').write('x'); " + attempt()[2];
  const RunOutput output = run({"--json"}, {"python3", "-c", script}, owned());
  const std::string rollback = output.json()["escape"]["rollback"];
  EXPECT_TRUE(rollback.starts_with("every change is discarded; the cache /cache was emptied")) << output.describe();
  EXPECT_EQ(readFile(workspace / "kept"), "before\n");
  EXPECT_FALSE(exists(workspace / "new"));
}

TEST_F(EscapeResponse, HidesTheCacheContentFromTheNextRun) {
  const std::string script = "open('/cache/planted', 'w').write('x'); " + attempt()[2];
  const RunOutput output = run({"--json"}, {"python3", "-c", script}, owned());
  const std::string rollback = output.json()["escape"]["rollback"];
  EXPECT_TRUE(contains(rollback, "the cache /cache was emptied")) << rollback;
  const RunOutput next = run({}, {"ls", "/cache"}, owned());
  EXPECT_EQ(next.exit_status, 0) << next.describe();
  EXPECT_EQ(next.out, "") << "the attacker's file is still there";
}

TEST_F(EscapeResponse, DeniedConnectionIsRecordedAsANetworkIndicator) {
  CONFORMS("R-SYSCALL-6");
  const std::string script =
      "import socket; s = socket.create_connection(('127.0.0.1', 3128)); "
      "s.sendall(b'CONNECT denied.example:443 HTTP/1.1\\r\\nHost: denied.example:443\\r\\n\\r\\n'); print(s.recv(20))";
  const RunOutput output =
      run({"--json", "--net", "proxy", "--allow-host", "allowed.example"}, {"python3", "-c", script}, owned());
  const auto denied = events({"--event", "proxy_denied"});
  ASSERT_EQ(denied.size(), 1U) << output.describe();
  EXPECT_EQ(denied[0]["data"]["indicator"], "NETWORK") << denied[0];
}

TEST_F(EscapeResponse, IsRecordedWithWhatCannotBeRolledBack) {
  CONFORMS("R-SYSCALL-8", "R-AUDIT-5", "R-SYSCALL-4", "R-AUDIT-9", "R-AUDIT-14");
  const RunOutput output = run({"--json", "--workspace", ".:rw"}, attempt(), owned());
  EXPECT_TRUE(contains(output.json()["escape"]["rollback"], "not possible")) << output.describe();
  EXPECT_TRUE(contains(output.json()["warnings"].dump(), "cannot be rolled back")) << "known from the start";
  const auto attempts = events({"--event", "escape_attempt"});
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts[0]["severity"], "CRITICAL");
  EXPECT_EQ(attempts[0]["data"]["trace"], output.json()["escape"]["trace"]);
  const auto blocked = events({"--event", "syscall_blocked"});
  ASSERT_EQ(blocked.size(), 1U);
  EXPECT_EQ(blocked[0]["data"]["syscall"], "bpf");
  EXPECT_EQ(blocked[0]["data"]["number"], std::stoi(number()));
  EXPECT_EQ(blocked[0]["data"]["arguments"], (json{"0x63", "0x0", "0x0", "0x0", "0x0", "0x0"}));
  EXPECT_GT(blocked[0]["data"]["syscall_pid"], 0);
  EXPECT_TRUE(contains(blocked[0]["data"]["program"], "python3"));
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
  EXPECT_EQ(caisson({"stats", "--json"}).json()["escape_attempts"], 1);
}

/// S4: a person who reads standard error, or a log of it, learns it before the program starts.
TEST_F(EscapeResponse, DirectWorkspaceIsReportedAtTheStartAndInTheAlert) {
  CONFORMS("R-SYSCALL-8");
  workspace.openToAll();
  RunOptions how = owned();
  how.cwd = workspace.path();
  const auto streams = [&](const std::string& options) {
    return runProgram(
               {"sh", "-c", "exec 2>&1; exec \"$0\" run " + options + " -- sh -c 'echo started >&2'", caissonBinary()},
               how)
        .out;
  };
  const std::string direct = streams("--workspace .:rw");
  const std::size_t warned = direct.find("cannot be rolled back");
  ASSERT_NE(warned, std::string::npos) << direct;
  EXPECT_LT(warned, direct.find("started")) << direct;
  EXPECT_EQ(direct.find("cannot be rolled back", warned + 1), std::string::npos) << "said twice: " << direct;
  EXPECT_EQ(streams("--workspace .:overlay"), "started\n");
  EXPECT_EQ(streams("-q --workspace .:rw"), "started\n");
  // A home directory is not shown unless it is named, so nothing in it can be changed.
  how.env["HOME"] = workspace.path();
  const std::string home = streams("--policy " + config_.write("rw.toml", "filesystem.workspace.mode = 'rw'\n"));
  EXPECT_FALSE(contains(home, "cannot be rolled back")) << home;
  EXPECT_TRUE(contains(home, "no workspace")) << home;

  const std::string told = config_ / "told";
  config_.write("caisson/config.toml", "[alerts]\ncommand = [\"/bin/sh\", \"-c\", \"cat > " + told + "\"]\n");
  ASSERT_EQ(run({"--workspace", ".:rw"}, attempt("direct"), owned()).exit_status, 125);
  EXPECT_TRUE(contains(json::parse(readFile(told), nullptr, false)["data"]["rollback"], "not possible"))
      << readFile(told);
  ASSERT_EQ(run({}, attempt("overlay"), owned()).exit_status, 125);
  EXPECT_TRUE(contains(json::parse(readFile(told), nullptr, false)["data"]["rollback"], "discarded")) << readFile(told);
}

TEST_F(EscapeResponse, PutsExactlyThisCommandIntoQuarantine) {
  CONFORMS("R-SYSCALL-10");
  const json result = run({"--json"}, attempt("one"), owned()).json();
  const std::string key = result["escape"]["quarantined"];
  EXPECT_TRUE(key.starts_with("sha256:")) << result;
  const RunOutput again = run({}, attempt("one"), owned());
  EXPECT_EQ(again.exit_status, 125);
  EXPECT_EQ(again.out, "") << "it ran";
  EXPECT_TRUE(contains(again.err, "caisson tool release " + key)) << again.err;
  EXPECT_EQ(run({}, attempt("two"), owned()).out, "before\n") << "another command is not meant";
  EXPECT_EQ(run({}, {"python3", "-c", "print(1)"}, owned()).out, "1\n") << "an interpreter never is";
  EXPECT_EQ(caisson({"tool", "list", "--json"}).json().size(), 2U);
}

TEST_F(EscapeResponse, NeverQuarantinesAnInterpreter) {
  RunOptions how = owned();
  how.stdin_data = attempt()[2];
  const RunOutput output = run({}, {"python3"}, how);
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "not put into quarantine")) << output.err;
  EXPECT_TRUE(caisson({"tool", "list", "--json"}).json().empty());
}

TEST_F(EscapeResponse, RunsTheOwnersAlertProgramAtOnce) {
  CONFORMS("R-SYSCALL-9");
  const std::string told = config_ / "told";
  config_.write("caisson/config.toml", "[alerts]\ncommand = [\"/bin/sh\", \"-c\", \"cat > " + told + "\"]\n");
  ASSERT_EQ(run({}, attempt(), owned()).exit_status, 125);
  const json alert = json::parse(readFile(told), nullptr, false);
  EXPECT_EQ(alert["event"], "escape_attempt") << readFile(told);
  EXPECT_EQ(alert["severity"], "CRITICAL");
  EXPECT_TRUE(contains(alert["data"]["reason"], "bpf")) << alert;
  EXPECT_EQ(events({"--event", "alert_failed"}).size(), 0U);
}

TEST_F(EscapeResponse, FailedAlertIsRecorded) {
  config_.write("caisson/config.toml", "[alerts]\ncommand = [\"/bin/false\"]\nwebhook = \"http://127.0.0.1:1/\"\n");
  const RunOutput output = run({}, attempt(), owned());
  EXPECT_EQ(output.exit_status, 125);
  EXPECT_TRUE(contains(output.err, "the alert did not get through: /bin/false: exit status 1")) << output.err;
  EXPECT_EQ(events({"--event", "alert_failed"}).size(), 2U);
}

TEST_F(EscapeResponse, CallsTheOwnersWebhook) {
  CONFORMS("R-SYSCALL-9");
  requireOrSkip(systemHas("curl"), "no curl");
  // Unique, so that no other process on the machine contains it, for example a second run of this test.
  const std::string secret = "sesame-" + std::to_string(::getpid()) + "-" + std::to_string(::time(nullptr));
  config_.write("server.py",
                "import glob, http.server, sys\n"
                "class Take(http.server.BaseHTTPRequestHandler):\n"
                "  def do_POST(self):\n"
                "    body = self.rfile.read(int(self.headers['Content-Length']))\n"
                "    lines = []\n"
                "    for file in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/environ'):\n"
                "      try: lines.append(open(file, 'rb').read())\n"
                "      except OSError: pass\n"
                "    told = [line for line in lines if self.path.rpartition('/')[2].encode() in line]\n"
                "    curl = [line for line in lines if line.startswith(b'curl\\0')]\n"
                "    open(sys.argv[1] + '/seen', 'w').write(self.path + f' {len(curl) > 0} {len(told)}')\n"
                "    self.send_response(204); self.end_headers()\n"
                "    open(sys.argv[1] + '/body', 'wb').write(body)\n"
                "server = http.server.HTTPServer(('127.0.0.1', 0), Take)\n"
                "open(sys.argv[1] + '/port', 'w').write(str(server.server_port) + '\\n')\n"
                "server.handle_request()\n");
  BackgroundProgram server({"python3", config_ / "server.py", config_.path()}, {});
  ASSERT_TRUE(eventually([&] { return exists(config_ / "port") && readFile(config_ / "port").ends_with("\n"); }));
  std::string port = readFile(config_ / "port");
  port.pop_back();
  config_.write("caisson/config.toml", "[alerts]\nwebhook = \"http://127.0.0.1:" + port + "/hook/" + secret + "\"\n");
  RunOptions how = owned();
  how.env["no_proxy"] = "127.0.0.1";
  const RunOutput output = run({}, attempt(), how);
  EXPECT_EQ(output.exit_status, 125);
  ASSERT_TRUE(eventually([&] { return exists(config_ / "body"); })) << output.err;
  EXPECT_EQ(json::parse(readFile(config_ / "body"), nullptr, false)["event"], "escape_attempt");
  EXPECT_EQ(readFile(config_ / "seen"), "/hook/" + secret + " True 0") << "its address is in a list of processes";
}

/// Anyone who knows a webhook's address can post to it: it is never printed, even if the call fails.
TEST_F(EscapeResponse, AWebhooksAddressIsASecret) {
  requireOrSkip(systemHas("curl"), "no curl");
  config_.write("caisson/config.toml",
                "[alerts]\nwebhook = \"http://me:sesame-1@127.0.0.1:1/a\\\"b/sesame-2?k=sesame-3\"\n");
  const RunOutput output = run({}, attempt(), owned());
  EXPECT_TRUE(contains(output.err, "curl http://127.0.0.1:1: exit status")) << output.err;
  EXPECT_FALSE(contains(output.err, "sesame")) << output.err;
  EXPECT_FALSE(contains(log(), "sesame"));
}

TEST_F(EscapeResponse, InvalidAlertsAreRejectedBeforeAnythingRuns) {
  for (const char* text : {"command = [\"relative\"]", "command = []", "command = \"sh\"", "webhook = \"ftp://x/\"",
                           "webhook = \"http://x y\"", "webhook = 7", "other = 1"}) {
    config_.write("caisson/config.toml", std::string("[alerts]\n") + text + "\n");
    const RunOutput output = run({}, {"true"}, owned());
    EXPECT_EQ(output.exit_status, 125) << text << output.describe();
    EXPECT_TRUE(contains(output.err, "alerts")) << output.err;
  }
}

/// A flood leaves a short trace: the first, second, fourth ... of its kind.
TEST_F(EscapeResponse, AFloodOfRefusalsDoesNotFloodTheLog) {
  CONFORMS("R-AUDIT-5", "R-AUDIT-14");
  const std::string script = "import ctypes\nc = ctypes.CDLL(None)\nfor i in range(200): c.syscall(" +
                             std::string(
#if defined(__x86_64__)
                                 "298"
#else
                                 "241"
#endif
                                 ) +
                             ", 0, 0, -1, -1, 0)\n";
  const RunOutput output = run({"--json"}, {"python3", "-c", script}, owned());
  EXPECT_EQ(output.json()["outcome"], "exited") << output.describe();
  const auto blocked = events({"--event", "syscall_blocked"});
  EXPECT_GE(blocked.size(), 5U);
  EXPECT_LE(blocked.size(), 64U);
  EXPECT_EQ(caisson({"stats", "--json"}).json()["syscalls_blocked"], 200);
}

}  // namespace
}  // namespace caisson::test
