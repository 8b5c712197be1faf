// Sandboxes of an MCP server: their processes end with a killed one, unless created with `keep`; a hostile process in
// one keeps no tool from working.
#include <gtest/gtest.h>

#include <csignal>

#include "functional/mcp_client.h"
#include "support/conforms.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class KilledMcpServer : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    own_session_ = cli.create();
    cli.start(own_session_, sleeper("session"));
    auto server = startServer();
    lost_ = createSandbox(*server, json::object(), "lost");
    kept_ = createSandbox(*server, {{"keep", true}}, "kept");
    ASSERT_TRUE(eventually([&] { return running("session") && running("lost") && running("kept"); }));
    server->signal(SIGKILL);
    ASSERT_EQ(server->wait(), 128 + SIGKILL);
  }

  [[nodiscard]] std::vector<std::string> sleeper(const std::string& name) const {
    return {"sh", "-c", "sleep 600; :", cli.marker() + name};
  }
  [[nodiscard]] std::unique_ptr<McpClient> startServer() const {
    return std::make_unique<McpClient>(
        std::vector<std::string>{"--workspace", cli.workspace.path()},
        std::map<std::string, std::string>{{"CAISSON_HOME", cli.home / "state"}, {"CAISSON_LOG", "off"}});
  }
  std::string createSandbox(McpClient& server, const json& arguments, const std::string& name) const {
    const json made = server.tool("sandbox_create", arguments);
    EXPECT_TRUE(made.contains("sandbox_id")) << made;
    const std::string id = made.value("sandbox_id", "");
    const json started = server.tool("sandbox_execute", {{"sandbox_id", id},
                                                         {"command", "sh"},
                                                         {"args", {"-c", "sleep 600; :", cli.marker() + name}},
                                                         {"background", true}});
    EXPECT_EQ(started.value("status", ""), "running") << started;
    return id;
  }
  [[nodiscard]] bool running(const std::string& name) const { return !liveProcesses(cli.marker() + name).empty(); }
  void expectOnlyLostSandboxEnded() const {
    EXPECT_TRUE(eventually([&] { return !running("lost"); })) << "the processes of the killed server live on";
    EXPECT_TRUE(running("kept")) << "a sandbox made with keep has ended";
    EXPECT_TRUE(running("session")) << "a sandbox of `session create` has ended";
    const std::string list = cli.caisson({"session", "list"}).out;
    EXPECT_NE(list.find(kept_), std::string::npos) << list;
    EXPECT_NE(list.find(own_session_), std::string::npos) << list;
    EXPECT_NE(list.find(kept_ + "  live"), std::string::npos) << list;
    EXPECT_NE(list.find(lost_ + "  idle"), std::string::npos) << "its files stay until it expires: " << list;
  }

  const SessionCli cli;
  std::string own_session_, lost_, kept_;
};

TEST_F(KilledMcpServer, ProcessesEndByThemselves) {
  CONFORMS("R-SESSION-4");
  expectOnlyLostSandboxEnded();
}

TEST_F(KilledMcpServer, FilesStayUntilTheSandboxExpires) {
  CONFORMS("R-SESSION-4");
  auto server = startServer();
  const std::string lasting = server->tool("sandbox_create", json::object()).value("sandbox_id", "");
  const std::string brief = server->tool("sandbox_create", {{"timeout_seconds", 10}}).value("sandbox_id", "");
  for (const std::string& id : {lasting, brief})
    server->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "file"}, {"content", "kept\n"}});
  server->signal(SIGKILL);
  ASSERT_EQ(server->wait(), 128 + SIGKILL);
  EXPECT_EQ(cli.caisson({"session", "read", lasting, "file"}).out, "kept\n");
  // A request would extend its time; the list does not. Uncommitted changes are kept for a grace period after it.
  EXPECT_TRUE(eventually(
      [&] {
        const std::string list = cli.caisson({"session", "list"}).out;
        const std::size_t at = list.find(brief);
        return at != std::string::npos &&
               list.substr(at, list.find('\n', at) - at).find("expired") != std::string::npos;
      },
      seconds(40)));
  EXPECT_EQ(cli.exec(brief, {"true"}).exit_status, 125);
  EXPECT_EQ(cli.caisson({"session", "read", lasting, "file"}).out, "kept\n");
}

TEST_F(KilledMcpServer, NextServerEndsItsSandboxes) {
  CONFORMS("R-SESSION-4");
  const auto server = startServer();
  EXPECT_TRUE(server->tool("sandbox_list", json::object()).contains("sandboxes"));
  expectOnlyLostSandboxEnded();
}

TEST_F(KilledMcpServer, CleanEndsItsSandboxes) {
  CONFORMS("R-SESSION-4", "R-AUDIT-17");
  const RunOutput cleaned = cli.caisson({"clean"});
  EXPECT_EQ(cleaned.exit_status, 0) << cleaned.describe();
  expectOnlyLostSandboxEnded();
}

class McpStopLoop : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    id_ = server_.tool("sandbox_create", json::object()).value("sandbox_id", "");
    ASSERT_FALSE(id_.empty());
    execute({{"command", "./payload"}, {"args", {"sibling", "stop-all", cli.marker()}}, {"background", true}});
    ASSERT_TRUE(eventually([&] { return loopSeconds() > 0.05; })) << "the loop does not run";
  }
  json execute(json arguments) {
    arguments["sandbox_id"] = id_;
    return server_.tool("sandbox_execute", arguments);
  }
  /// CPU time of the process that stops all others.
  [[nodiscard]] double loopSeconds() const {
    double total = 0;
    for (const pid_t pid : liveProcesses(cli.marker())) {
      if (const auto state = processState(pid)) total += state->cpu_seconds;
    }
    return total;
  }
  [[nodiscard]] bool loopIsGone() const { return liveProcesses(cli.marker()).empty(); }

  const SessionCli cli;
  McpClient server_{std::vector<std::string>{"--workspace", cli.workspace.path()},
                    std::map<std::string, std::string>{{"CAISSON_HOME", cli.home / "state"}, {"CAISSON_LOG", "off"}}};
  std::string id_;
};

TEST_F(McpStopLoop, TimeoutEndsStoppedCommand) {
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const json ended = execute({{"command", "sleep 60"}, {"timeout_ms", 1000}});
    EXPECT_EQ(ended.value("status", ""), "timed_out") << ended;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(6));
  }
}

TEST_F(McpStopLoop, FileToolsWork) {
  EXPECT_FALSE(
      server_.tool("sandbox_write_file", {{"sandbox_id", id_}, {"path", "made"}, {"content", "text"}}).empty());
  const json read = server_.tool("sandbox_read_file", {{"sandbox_id", id_}, {"path", "made"}});
  EXPECT_EQ(read.value("content", ""), "text") << read;
}

TEST_F(McpStopLoop, EscapeAttemptEndsSandboxAndIsRecorded) {
  ASSERT_TRUE(signalProcess(firstLiveProcess(cli.marker()), SIGUSR1));
  EXPECT_TRUE(eventually([&] { return loopIsGone(); }));
  EXPECT_TRUE(eventually([&] { return cli.events("escape_attempt").size() == 1; }));
}

TEST_F(McpStopLoop, DestroyEndsEverything) {
  server_.tool("sandbox_destroy", {{"sandbox_id", id_}});
  EXPECT_TRUE(eventually([&] { return loopIsGone(); }, seconds(5)));
}

}  // namespace
}  // namespace caisson::test
