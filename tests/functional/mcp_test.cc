// `caisson mcp` over stdio with real sandboxes, as an agent host uses it.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

TEST_F(Mcp, MessageBeyondTheLimitsIsAnsweredWithItsId) {
  const auto client = start();
  Json deep = Json::array();
  for (int level = 0; level < 100; ++level) deep = Json::array({std::move(deep)});
  for (const Json& arguments : {Json(std::vector<std::string>(300'000, "a")), deep}) {
    const Json refused = client->request(
        "tools/call", {{"name", "sandbox_execute"}, {"arguments", {{"command", "true"}, {"args", arguments}}}});
    ASSERT_TRUE(refused.contains("error")) << refused;
    EXPECT_EQ(refused["error"]["code"], -32600) << refused;
  }
  EXPECT_TRUE(client->request("tools/list", Json::object()).contains("result"));
}

TEST_F(Mcp, SandboxPersistsAcrossCallsAndTheRealFilesStayUnchanged) {
  CONFORMS("R-SESSION-6");
  const auto client = start();
  const std::string id = create(*client, {{"name", "flow"}});
  const Json ran = client->tool(
      "sandbox_execute", {{"sandbox_id", id}, {"command", "cat a.txt; echo changed > a.txt; echo oops >&2; exit 3"}});
  EXPECT_EQ(ran["status"], "exited") << ran;
  EXPECT_EQ(ran["exit_code"], 3);
  EXPECT_EQ(ran["stdout"], "from the host\n");
  EXPECT_EQ(ran["stderr"], "oops\n");
  EXPECT_EQ(client->tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "a.txt"}})["content"], "changed\n");
  client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "new/b.txt"}, {"content", "one two one"}});
  EXPECT_EQ(
      client->call("sandbox_edit_file",
                   {{"sandbox_id", id}, {"path", "new/b.txt"}, {"old_text", "one"}, {"new_text", "x"}})["isError"],
      true);
  client->tool("sandbox_edit_file",
               {{"sandbox_id", id}, {"path", "new/b.txt"}, {"old_text", "two"}, {"new_text", "2"}});
  EXPECT_EQ(
      client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat"}, {"args", {"new/b.txt"}}})["stdout"],
      "one 2 one");
  const Json listed = client->tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "/workspace"}});
  EXPECT_EQ(listed["total_entries"], 2) << listed;
  const Json all = client->tool("sandbox_list", Json::object())["sandboxes"];
  ASSERT_EQ(all.size(), 1U) << all;
  EXPECT_EQ(all[0]["sandbox_id"], id) << all;
  EXPECT_EQ(readFile(workspace / "a.txt"), "from the host\n");
  EXPECT_FALSE(exists(workspace / "new"));
  EXPECT_EQ(client->tool("sandbox_destroy", {{"sandbox_id", id}})["destroyed"], true);
  EXPECT_EQ(client->tool("sandbox_list", Json::object())["sandboxes"], Json::array());
  EXPECT_EQ(client->call("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}})["isError"], true);
}

TEST_F(Mcp, ConformanceStartsTheProgramWithTheFixtures) {
  McpClient client({"--conformance"}, environment());
  const std::string tools = client.request("tools/list", Json::object()).dump();
  EXPECT_NE(tools.find("test_simple_text"), std::string::npos) << tools;
  EXPECT_EQ(tools.find("sandbox_create"), std::string::npos) << tools;
  client.closeInput();
  EXPECT_EQ(client.wait(), 0);
}

TEST_F(Mcp, MissingServerProgramIsAnErrorThatNamesIt) {
  const std::string alone = workspace / "caisson";
  std::filesystem::copy_file(caissonBinary(), alone);
  const RunOutput output = runProgram({alone, "mcp"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_NE(output.err.find(alone + "-mcp: No such file"), std::string::npos) << output.describe();
  EXPECT_NE(output.err.find("install caisson-mcp beside caisson"), std::string::npos) << output.describe();
}

/// The command itself: on loopback only, and not without the token.
TEST_F(Mcp, HttpIsServedOnLoopbackWithTheTokenOnly) {
  CONFORMS("R-SESSION-19");
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0"}) {
    const RunOutput refused = runCaisson({"mcp", "--http", address}, {.env = environment()});
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_NE(refused.err.find("only loopback addresses are served"), std::string::npos) << refused.describe();
    EXPECT_EQ(refused.err.find("--tls-cert"), std::string::npos) << "there is no such option: " << refused.describe();
    EXPECT_FALSE(std::filesystem::exists(home / "mcp/token")) << "created for an address that is refused";
  }
  auto variables = environment();
  variables["CAISSON_LOG"] = "info";
  const std::string log = home / "log";
  BackgroundProgram server({"/bin/sh", "-c", "exec \"$0\" mcp --http 0 --workspace \"$1\" 2> \"$2\"", caissonBinary(),
                            workspace.path(), log},
                           {.env = variables});
  std::string port;
  ASSERT_TRUE(eventually([&] {
    const std::string text = exists(log) ? readFile(log) : "";
    const std::size_t at = text.find("\"port\":");
    if (at == std::string::npos || text.find('\n', at) == std::string::npos) return false;
    port = text.substr(at + 7, text.find_first_not_of("0123456789", at + 7) - at - 7);
    return true;
  })) << readFile(log);
  std::string token = readFile(home / "state/mcp/token");
  token = token.substr(0, token.find('\n'));
  const auto post = [&](const std::string& authorization) {
    const std::string script = R"(
import http.client, json, sys
port, word = sys.argv[1:]
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
           "Mcp-Method": "tools/list", "MCP-Protocol-Version": "2026-07-28"}
if word: headers["Authorization"] = word
meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list",
                                               "params": {"_meta": meta}}), headers)
answer = connection.getresponse()
print(answer.status, "sandbox_execute" in answer.read().decode()))";
    return runProgram({"python3", "-c", script, port, authorization}).out;
  };
  EXPECT_EQ(post("Bearer " + token), "200 True\n");
  EXPECT_EQ(post("Bearer " + std::string(token.size(), '0')), "401 False\n");
  EXPECT_EQ(post(""), "401 False\n");
}

TEST_F(Mcp, EveryToolTakesSessionIdForSandboxId) {
  CONFORMS("R-SESSION-7");
  const auto client = start();
  const std::string id = create(*client);
  EXPECT_EQ(client->tool("sandbox_execute", {{"session_id", id}, {"command", "echo hello"}})["stdout"], "hello\n");
  client->tool("sandbox_write_file", {{"session_id", id}, {"path", "b.txt"}, {"content", "written"}});
  EXPECT_EQ(client->tool("sandbox_read_file", {{"session_id", id}, {"path", "b.txt"}})["content"], "written");
  EXPECT_EQ(client->tool("sandbox_info", {{"session_id", id}, {"sandbox_id", id}})["sandbox_id"], id);
  const Json different = client->call("sandbox_info", {{"session_id", id}, {"sandbox_id", "s-of-another"}});
  EXPECT_EQ(different["isError"], true) << different;
  EXPECT_TRUE(different.dump().find("different values") != std::string::npos) << different;
  EXPECT_EQ(client->call("sandbox_info", Json::object())["isError"], true);
  EXPECT_EQ(client->call("sandbox_info", {{"session_id", 3}})["isError"], true);
  int with_alias = 0;
  const Json listed = client->request("tools/list", Json::object())["result"]["tools"];
  for (const Json& tool : listed) {
    const Json& properties = tool["inputSchema"]["properties"];
    EXPECT_EQ(properties.contains("sandbox_id"), properties.contains("session_id")) << tool["name"];
    with_alias += properties.contains("session_id") ? 1 : 0;
  }
  EXPECT_EQ(with_alias, static_cast<int>(listed.size()) - 2) << "all but sandbox_create and sandbox_list";
  EXPECT_EQ(client->tool("sandbox_destroy", {{"session_id", id}})["destroyed"], true);
}

TEST_F(Mcp, DefaultIsDevWithTwoMinutesPerCommandAndAtMostAnHour) {
  CONFORMS("R-POLICY-16");
  const auto client = start();
  const Json made = client->tool("sandbox_create", {{"empty", true}});
  EXPECT_EQ(made["profile"], "dev");
  const std::string id = made["sandbox_id"];
  const Json policy = client->tool("sandbox_info", {{"sandbox_id", id}})["policy"];
  EXPECT_EQ(policy["wall_seconds"], 120) << policy;
  EXPECT_EQ(policy["max_processes"], 4096) << policy;
  EXPECT_EQ(policy["open_files"], 16384) << policy;
  const auto fails = [&](std::int64_t minutes) {
    return client->call("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}, {"timeout_ms", minutes * 60'000}})
        .value("isError", false);
  };
  EXPECT_FALSE(fails(60));
  EXPECT_TRUE(fails(61));
  const std::string bash = client->tool("sandbox_create", {{"empty", true}, {"profile", "bash"}})["sandbox_id"];
  EXPECT_EQ(client->tool("sandbox_info", {{"sandbox_id", bash}})["policy"]["open_files"], 1024);
}

TEST_F(Mcp, CommandRulesOfAProfileApplyToEachCommand) {
  CONFORMS("R-PROCESS-9");
  const auto client = start();
  const std::string id = create(*client, {{"profile", "cargo"}});
  const Json refused = client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "ls"}, {"args", {"/"}}});
  EXPECT_EQ(refused["status"], "denied") << refused;
  EXPECT_TRUE(refused.dump().find("commands.allowed_patterns") != std::string::npos) << refused;
}

TEST_F(Mcp, PathThatLeavesTheWorkspaceIsRecordedOnce) {
  CONFORMS("R-FILES-12");
  const auto client = start();
  const std::string id = create(*client);
  EXPECT_EQ(client->call("sandbox_read_file", {{"sandbox_id", id}, {"path", "../../../etc/passwd"}})["isError"], true);
  const std::string log =
      runCaisson({"audit", "show", "--json", "--event", "policy_violation"}, {.env = environment()}).out;
  EXPECT_NE(log.find("\"indicator\":\"FILESYSTEM\""), std::string::npos) << log;
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
}

TEST_F(Mcp, EveryFileToolRefusesAndRecordsAPathThatLeavesTheWorkspace) {
  CONFORMS("R-FILES-12");
  const auto client = start();
  const std::string id = create(*client);
  const auto recorded = [&] {
    const std::string log =
        runCaisson({"audit", "show", "--json", "--event", "policy_violation"}, {.env = environment()}).out;
    return std::count(log.begin(), log.end(), '\n');
  };
  for (const char* path : {"../x", "a/../../x", "/workspace/../etc/passwd"}) {
    for (const auto& [tool, arguments] :
         std::vector<std::pair<std::string, Json>>{{"sandbox_read_file", Json::object()},
                                                   {"sandbox_write_file", {{"content", "x"}}},
                                                   {"sandbox_edit_file", {{"old_text", "x"}, {"new_text", "y"}}}}) {
      Json all = arguments;
      all["sandbox_id"] = id;
      all["path"] = path;
      const auto before = recorded();
      EXPECT_EQ(client->call(tool, all)["isError"], true) << tool << path;
      EXPECT_EQ(recorded(), before + 1) << tool << path;
    }
  }
}

TEST_F(Mcp, ToolsTakeRequiredArgumentsWithDefaults) {
  CONFORMS("R-SESSION-12");
  const auto client = start();
  const Json made = client->tool("sandbox_create", {{"name", "named"}, {"workspace_path", workspace.path()}});
  const std::string id = made["sandbox_id"];
  const Json info = client->tool("sandbox_info", {{"sandbox_id", id}});
  EXPECT_EQ(info["name"], "named") << info;
  EXPECT_NEAR(info["expires_in_seconds"].get<double>(), 3600, 60) << info;
  const auto out = [&](Json arguments) {
    arguments["sandbox_id"] = id;
    return client->tool("sandbox_execute", arguments)["stdout"];
  };
  EXPECT_EQ(out({{"command", "pwd"}, {"working_dir", "/tmp"}}), "/tmp\n");
  EXPECT_EQ(out({{"command", "echo $((1 + 1))"}}), "2\n") << "a command without args is a shell's";
  EXPECT_EQ(out({{"command", "echo"}, {"args", {"$((1 + 1))"}}}), "$((1 + 1))\n") << "with args there is no shell";
  client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "written"}, {"content", "by a tool"}});
  EXPECT_EQ(client->tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "written"}})["content"], "by a tool");
  EXPECT_EQ(out({{"command", "cat"}, {"args", {"written"}}}), "by a tool");
  const std::string brief = client->tool("sandbox_create", {{"empty", true}, {"timeout_seconds", 900}})["sandbox_id"];
  EXPECT_NEAR(client->tool("sandbox_info", {{"sandbox_id", brief}})["expires_in_seconds"].get<double>(), 900, 60);
}

TEST_F(Mcp, CeilingsBindTheMemoryOfASandbox) {
  CONFORMS("R-POLICY-4");
  const auto client = start();
  const Json refused = client->call("sandbox_create", {{"empty", true}, {"profile", "bash"}, {"memory", "64G"}});
  EXPECT_EQ(refused.value("isError", false), true) << refused;
  EXPECT_NE(refused.dump().find("ceiling"), std::string::npos) << refused;
  EXPECT_FALSE(
      client->call("sandbox_create", {{"empty", true}, {"profile", "bash"}, {"memory", "1G"}}).value("isError", false));
}

TEST_F(Mcp, EachCommandIsRecordedAsEnteredAndExited) {
  CONFORMS("R-AUDIT-3");
  const auto client = start();
  const std::string id = create(*client);
  const auto count = [&](const std::string& event) {
    const std::string log =
        runCaisson({"audit", "show", "--json", "--event", event, "--sandbox", id}, {.env = environment()}).out;
    return std::count(log.begin(), log.end(), '\n');
  };
  EXPECT_EQ(count("sandbox_entered"), 0);
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}});
  EXPECT_EQ(count("sandbox_entered"), 1);
  EXPECT_EQ(count("sandbox_exited"), 1);
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}, {"background", true}});
  EXPECT_TRUE(eventually([&] { return count("sandbox_entered") == 2 && count("sandbox_exited") == 2; }))
      << "a background command";
}

TEST_F(Mcp, SandboxesCountInTheStatistics) {
  CONFORMS("R-AUDIT-14");
  const auto client = start();
  const std::string id = create(*client);
  create(*client, {{"empty", true}});
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "unshare -r true; true"}});
  Json stats;  // the session's supervisor writes them after the response
  EXPECT_TRUE(eventually([&] {
    stats = runCaisson({"stats", "--json"}, {.env = environment()}).json();
    return stats["syscalls_blocked"] == 1;
  })) << stats;
  EXPECT_EQ(stats["sandboxes_created"], 2) << stats;
  EXPECT_NEAR(stats["created_per_second"]["last_minute"].get<double>() * 60, 2, 1e-6) << stats;
}

TEST_F(Mcp, AProjectsPolicyIsNotUsedWithoutConsent) {
  CONFORMS("R-POLICY-13");
  workspace.write("caisson.toml", "[environment.set]\nFROM_PROJECT = 'yes'\n");
  const auto client = start();
  const std::string id = create(*client);
  EXPECT_EQ(client->tool("sandbox_execute",
                         {{"sandbox_id", id}, {"command", "printenv FROM_PROJECT || echo unset"}})["stdout"],
            "unset\n");
}

TEST_F(Mcp, DebugLogShowsRequestsAndNoArguments) {
  CONFORMS("R-SESSION-9");
  const auto logOf = [&](const std::string& level) {
    std::map<std::string, std::string> variables = environment();
    variables["CAISSON_LOG"] = level;
    const std::string request =
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sandbox_list","arguments":{"x":"secret-word"},)"
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
        R"("io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},)"
        R"("io.modelcontextprotocol/clientCapabilities":{}}}})"
        "\n";
    return runCaisson({"mcp", "--workspace", workspace.path()}, {.stdin_data = request, .env = variables}).err;
  };
  EXPECT_EQ(logOf("info").find("sandbox_list"), std::string::npos);
  const std::string debug = logOf("debug");
  EXPECT_NE(debug.find("\"name\":\"sandbox_list\""), std::string::npos) << debug;
  EXPECT_EQ(debug.find("secret-word"), std::string::npos) << debug;
}

TEST_F(Mcp, SecretThatAppearsIsHiddenFromABackgroundCommandAndFromReads) {
  const auto client = start();
  const std::string id = create(*client);
  const Json started =
      client->tool("sandbox_execute", {{"sandbox_id", id},
                                       {"command", "read line; " + readUntilHidden(".env") + "echo end"},
                                       {"background", true},
                                       {"keep_stdin", true}});
  ASSERT_EQ(started["status"], "running") << started;
  workspace.write(".env", "canary\n");
  const Json process{{"sandbox_id", id}, {"exec_id", started["exec_id"]}};
  Json input = process;
  input.update({{"action", "input"}, {"data", "now\n"}, {"close", true}});
  client->tool("sandbox_process", input);
  const Json ended = client->tool("sandbox_process", process);
  EXPECT_EQ(ended["status"], "exited") << ended;
  EXPECT_EQ(ended["stdout"], "end\n");
  EXPECT_EQ(client->call("sandbox_read_file", {{"sandbox_id", id}, {"path", ".env"}})["isError"], true);
}

TEST_F(Mcp, InvalidArgumentsAreNamedAndChangeNothing) {
  CONFORMS("R-SESSION-8");
  const auto client = start();
  const std::string id = create(*client);
  const std::string before = runProgram({"ls", "-lAR", "--time-style=full-iso", workspace.path()}).out;
  // The message has the name of the argument, or the id that is not known.
  const auto refused = [&](const std::string& tool, const Json& arguments, const std::string& named) {
    const Json result = client->call(tool, arguments);
    EXPECT_EQ(result.value("isError", false), true) << tool << arguments << result;
    EXPECT_NE(result.dump().find(named), std::string::npos) << named << " is not in " << result;
  };
  refused("sandbox_execute", {{"sandbox_id", id}}, "command");
  refused("sandbox_execute", {{"sandbox_id", id}, {"command", 5}}, "command");
  refused("sandbox_execute", {{"sandbox_id", id}, {"command", "x"}, {"args", {1, 2}}}, "args");
  refused("sandbox_execute", {{"sandbox_id", id}, {"command", std::string("a\0b", 3)}}, "command");
  refused("sandbox_execute", {{"sandbox_id", id}, {"command", "x"}, {"unknown", 1}}, "unknown");
  refused("sandbox_execute", {{"sandbox_id", "../../etc"}, {"command", "x"}}, "../../etc");
  refused("sandbox_execute", {{"sandbox_id", "cs-00000000000000000000000000000000"}, {"command", "x"}},
          "cs-00000000000000000000000000000000");
  refused("sandbox_process", {{"sandbox_id", id}, {"exec_id", "x999"}}, "exec_id");
  refused("sandbox_process", {{"sandbox_id", id}, {"exec_id", "b999"}}, "999: there is no such background command");
  for (const char* path : {"../a", "/workspace/../etc/passwd", "a/../../b"})
    refused("sandbox_write_file", {{"sandbox_id", id}, {"path", path}, {"content", "x"}}, "climbs out of /workspace");
  for (const char* path : {"", "\x01/../.."})
    refused("sandbox_write_file", {{"sandbox_id", id}, {"path", path}, {"content", "x"}}, "");
  refused("sandbox_read_file", {{"sandbox_id", id}, {"path", std::string("a.txt\0x", 7)}}, "path");
  refused("sandbox_create", {{"timeout_seconds", -1}}, "timeout_seconds");
  refused("sandbox_create", {{"profile", "no-such"}}, "no-such");
  EXPECT_TRUE(client->request("tools/call", {{"name", "no_such_tool"}}).contains("error"));
  EXPECT_TRUE(client->request("tools/call", {{"name", "sandbox_list"}, {"arguments", 5}}).contains("error"));
  EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "echo fine; cat a.txt"}})["stdout"],
            "fine\nfrom the host\n");
  EXPECT_EQ(runProgram({"ls", "-lAR", "--time-style=full-iso", workspace.path()}).out, before);
}

TEST_F(Mcp, HostileLinesAreAnsweredOrDroppedAndTheServerContinues) {
  CONFORMS("R-SESSION-11");
  const auto client = start();
  client->sendLine("{bad");
  client->sendLine(std::string(100'000, '['));
  client->sendLine("[]");
  client->sendLine(R"({"jsonrpc":"2.0","id":null,"method":"ping"})");
  client->sendLine("\xff\xfe");
  client->sendLine(R"({"jsonrpc":"2.0","id":1,"result":{}})");
  client->sendLine(std::string(9 << 20, 'x'));
  EXPECT_TRUE(client->request("server/discover", Json::object()).contains("result"));
}

TEST_F(Mcp, CeilingsBindTheTimeOutOfACommand) {
  CONFORMS("R-POLICY-4");
  const TempDir config;
  config.openToAll();
  const auto configure = [&](const std::string& seconds) {
    config.write("caisson/config.toml", "[ceilings]\nwall_seconds = '" + seconds + "'\n", 0600);
  };
  configure("20m");
  auto environment = this->environment();
  environment["XDG_CONFIG_HOME"] = config.path();
  McpClient client({"--workspace", workspace.path()}, environment);
  const std::string id = create(client);
  const auto fails = [&](double minutes, bool background) {
    const Json arguments{{"sandbox_id", id},
                         {"command", "true"},
                         {"timeout_ms", static_cast<std::int64_t>(minutes * 60'000)},
                         {"background", background}};
    return client.call("sandbox_execute", arguments).value("isError", false);
  };
  // Twice each: the second command may use the plan cached by the first.
  for (int round = 0; round < 2; ++round) {
    configure("20m");
    EXPECT_FALSE(fails(15, false));
    EXPECT_TRUE(fails(21, false));
    configure("30s");
    EXPECT_FALSE(fails(0.5, false));
    EXPECT_TRUE(fails(0.6, false));
    EXPECT_TRUE(fails(0.6, true));
  }
}

TEST_F(Mcp, StandardOutputCarriesTheProtocolOnly) {
  CONFORMS("R-SESSION-9");
  const std::string line = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";
  auto with_log = environment();
  with_log["CAISSON_LOG"] = "debug";
  const RunOutput output = runCaisson({"mcp"}, {.stdin_data = line + "\n", .env = with_log});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.json()["result"], Json::object()) << output.describe();
  // The client rejects every line that is not a message; here the server logs a command, a denial and an error.
  McpClient client({"--workspace", workspace.path()}, with_log);
  const std::string id = create(client);
  const Json ran = client.tool("sandbox_execute", {{"sandbox_id", id}, {"command", "echo out; echo err >&2; exit 1"}});
  EXPECT_EQ(ran["stdout"], "out\n");
  EXPECT_EQ(client.call("sandbox_read_file", {{"sandbox_id", id}, {"path", "../x"}})["isError"], true);
  EXPECT_EQ(client.call("sandbox_execute", {{"sandbox_id", "cs-none"}, {"command", "x"}})["isError"], true);
  EXPECT_EQ(client.tool("sandbox_destroy", {{"sandbox_id", id}})["destroyed"], true);
}

TEST_F(Mcp, AClientThatNeverReadsDoesNotKeepTheServerAlive) {
  const auto client = start();
  client->neverWait();
  for (int i = 0; i < 3000; ++i) client->send("tools/list", Json::object());
  sleepFor(std::chrono::milliseconds(300));
  client->signal(SIGTERM);
  EXPECT_EQ(client->wait(std::chrono::seconds(5)), 0);
  const auto closing = start();
  closing->neverWait();
  for (int i = 0; i < 3000; ++i) closing->send("tools/call", {{"name", "sandbox_list"}});
  closing->closeInput();
  EXPECT_EQ(closing->wait(std::chrono::seconds(12)), 0);
}

}  // namespace
}  // namespace caisson::test
