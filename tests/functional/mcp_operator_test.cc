// The operator's policy of `caisson mcp`: no tool offers what its flags decide as a parameter, and a client that sends
// more than they allow is refused and recorded.
#include <unistd.h>

#include <set>

#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// What a client could try to exceed with a parameter. Every parameter of every tool of a server without flags has a
/// row here or in kFree, so that a new one needs a decision.
struct Attempt {
  const char* tool;
  const char* parameter;
  const char* arguments;  ///< JSON; SANDBOX is a sandbox of this server, FOREIGN one with more than the operator
                          ///< allows, OTHER a directory that is not opened
};

constexpr Attempt kAttempts[] = {
    {"sandbox_create", "workspace_path", R"({"workspace_path": "OTHER"})"},
    {"sandbox_create", "timeout_seconds", R"({"timeout_seconds": 601})"},
    {"sandbox_create", "profile", R"({"profile": "web-fetch"})"},
    {"sandbox_create", "image", R"({"image": "debian:12"})"},
    {"sandbox_create", "root", R"({"root": true})"},
    {"sandbox_create", "memory", R"({"memory": "1G"})"},
    {"sandbox_execute", "command", R"({"sandbox_id": "SANDBOX", "command": "echo forbidden-word"})"},
    {"sandbox_execute", "args", R"({"sandbox_id": "SANDBOX", "command": "echo", "args": ["forbidden-word"]})"},
    {"sandbox_execute", "timeout_ms", R"({"sandbox_id": "SANDBOX", "command": "true", "timeout_ms": 30001})"},
    {"sandbox_execute", "env", R"({"sandbox_id": "SANDBOX", "command": "true", "env": {"MODE": "other"}})"},
    {"sandbox_read_file", "path", R"({"sandbox_id": "SANDBOX", "path": "./secret/key"})"},
    {"sandbox_write_file", "path", R"({"sandbox_id": "SANDBOX", "path": "/workspace/secret/key", "content": "x"})"},
    {"sandbox_edit_file", "path",
     R"({"sandbox_id": "SANDBOX", "path": "secret/key", "old_text": "k", "new_text": "x"})"},
    {"sandbox_read_file", "path",
     R"({"sandbox_id": "SANDBOX", "path": "c2VjcmV0L2tleQ==", "path_encoding": "base64"})"},
    {"sandbox_write_file", "path",
     R"({"sandbox_id": "SANDBOX", "path": "c2VjcmV0L2tleQ==", "path_encoding": "base64", "content": "x"})"},
    {"sandbox_edit_file", "path",
     R"({"sandbox_id": "SANDBOX", "path": "c2VjcmV0L2tleQ==", "path_encoding": "base64", "old_text": "k", "new_text": "x"})"},
    {"sandbox_upload", "path", R"({"sandbox_id": "SANDBOX", "path": "secret/key", "content": "x"})"},
    {"sandbox_upload", "source",
     R"({"sandbox_id": "SANDBOX", "path": "x", "source": "caisson://SANDBOX/fs/secret/key"})"},
    {"sandbox_upload", "source",
     R"({"sandbox_id": "SANDBOX", "path": "x", "source": "caisson://SANDBOX/root/workspace/./secret/key"})"},
    {"sandbox_upload", "source", R"({"sandbox_id": "SANDBOX", "path": "x", "source": "caisson://FOREIGN/fs/a.txt"})"},
    {"sandbox_download", "paths", R"({"sandbox_id": "SANDBOX", "paths": ["a.txt", "/workspace/secret/key"]})"},
    {"sandbox_fork", "timeout_seconds", R"({"sandbox_id": "SANDBOX", "timeout_seconds": 601})"},
};

/// Parameters that exceed nothing, whatever their value.
constexpr struct {
  const char* tool;
  std::initializer_list<const char*> parameters;
  const char* why;
} kFree[] = {
    {"sandbox_create", {"name", "keep"}, "a label; it ends with its time to live, which is bounded"},
    {"sandbox_create", {"empty"}, "it shows less than the operator's directory"},
    {"sandbox_execute", {"stdin", "wait_ms", "keep_stdin"}, "data for a command; how long the call waits"},
    {"sandbox_execute", {"working_dir", "background"}, "inside the sandbox; the time limit holds (a test below)"},
    {"sandbox_process", {"exec_id", "action", "data", "close", "wait_ms", "offset"}, "commands of the same sandbox"},
    {"sandbox_read_file", {"offset", "limit", "path_encoding"}, "a part of a file that may be read"},
    {"sandbox_write_file",
     {"content", "encoding", "append", "executable", "path_encoding"},
     "a file that may be written"},
    {"sandbox_edit_file", {"old_text", "new_text", "replace_all", "path_encoding"}, "a file that may be written"},
    {"sandbox_upload", {"content", "encoding", "executable"}, "a file that may be written"},
    {"sandbox_checkpoint", {"name", "stop_processes"}, "the sandbox's own state"},
    {"sandbox_restore", {"checkpoint", "stop_processes"}, "the sandbox's own state"},
    {"sandbox_fork", {"name", "stop_processes"}, "the sandbox's own state"},
    {"sandbox_diff", {"checkpoint", "patch", "paths", "max_bytes", "paths_encoding"}, "what the sandbox shows anyway"},
};

/// Tools that the server of the test does not offer: every parameter of them is refused.
const std::set<std::string> kTakenAway{"sandbox_commit", "sandbox_network"};

class McpOperator : public Mcp {
 protected:
  void SetUp() override {
    Mcp::SetUp();
    if (IsSkipped()) return;
    workspace.write("secret/key", "k");
    workspace.openToAll();
    other.openToAll();
    policy = other.write("narrow.toml", R"(
extends = "dev"
name = "narrow"
[filesystem]
denied = ["/workspace/secret"]
[resources]
memory = "256M"
wall_seconds = 30
[environment.set]
MODE = "fixed"
[commands]
blocked_patterns = ["forbidden-word"]
)");
    other.openToAll();
  }
  [[nodiscard]] std::unique_ptr<McpClient> startNarrow(Json capabilities = Json::object()) const {
    return start(std::move(capabilities),
                 {"--policy", policy, "--workspace", workspace.path() + ":ro", "--ttl", "10m"});
  }
  /// The recorded attempts so far.
  [[nodiscard]] std::vector<Json> violations() const {
    std::vector<Json> found;
    std::string log = runCaisson({"audit", "show", "--json"}, {.env = environment()}).out;
    for (std::size_t end = 0; (end = log.find('\n')) != std::string::npos; log.erase(0, end + 1)) {
      Json event = Json::parse(log.substr(0, end), nullptr, false);
      if (event.is_object() && event.value("event", "") == "policy_violation") found.push_back(std::move(event));
    }
    return found;
  }
  /// Sends a request that must be refused, and be on record after it; returns the record.
  Json expectRefused(McpClient& client, const std::string& tool, const Json& arguments) const {
    const std::size_t before = violations().size();
    const Json result = client.call(tool, arguments);
    EXPECT_EQ(result.value("isError", false), true) << tool << " " << arguments << " gave " << result;
    std::vector<Json> after;
    // The supervisor of a session defers what it records while the log is busy.
    const auto recorded = [&] { return (after = violations()).size() > before; };
    EXPECT_TRUE(eventually(recorded, std::chrono::seconds(20)))
        << tool << " " << arguments << " is not on record: " << result;
    return after.empty() ? Json::object() : after.back();
  }
  /// The same, and the record names the tool and the parameter.
  void expectRefusedFor(McpClient& client, const std::string& tool, const std::string& parameter,
                        const Json& arguments) const {
    const Json record = expectRefused(client, tool, arguments);
    const Json& data = record.contains("data") ? record["data"] : record;
    EXPECT_EQ(data.value("rule", ""), "operator") << tool << " " << arguments << " recorded as " << record;
    EXPECT_EQ(data.value("tool", ""), tool) << record;
    EXPECT_EQ(data.value("parameter", ""), parameter) << record;
  }
  [[nodiscard]] Json argumentsOf(const Attempt& attempt, const std::string& sandbox, const std::string& foreign) const {
    std::string text = attempt.arguments;
    const auto put = [&](std::string_view name, const std::string& value) {
      for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
    };
    put("SANDBOX", sandbox);
    put("FOREIGN", foreign);
    put("OTHER", other.path());
    return Json::parse(text);
  }
  static Json listed(McpClient& client) { return client.request("tools/list", Json::object())["result"]["tools"]; }
  static std::set<std::string> toolsOf(McpClient& client) {
    std::set<std::string> names;
    for (const Json& tool : listed(client)) names.insert(tool["name"]);
    return names;
  }
  static std::set<std::string> parametersOf(McpClient& client, const std::string& name) {
    std::set<std::string> names;
    for (const Json& tool : listed(client))
      if (tool["name"] == name)
        for (const auto& [parameter, schema] : tool["inputSchema"]["properties"].items()) names.insert(parameter);
    return names;
  }

  const TempDir other;
  std::string policy;
};

TEST_F(McpOperator, ExcessInEveryParameterIsRefusedAndRecorded) {
  CONFORMS("R-SESSION-20");
  const auto usual = start();
  const Json everything = listed(*usual);
  ASSERT_GE(everything.size(), 15U);
  const auto narrow = startNarrow();
  const std::string id = create(*narrow);
  // A sandbox with more memory than the operator allows, which another process made.
  const std::string foreign = create(*usual, {{"memory", "512M"}, {"keep", true}});
  for (const Json& tool : everything) {
    const std::string name = tool["name"];
    if (kTakenAway.contains(name)) expectRefused(*narrow, name, {{"sandbox_id", id}});
    for (const auto& [parameter, schema] : tool["inputSchema"]["properties"].items()) {
      if (kTakenAway.contains(name)) {
        expectRefused(*narrow, name, {{"sandbox_id", id}, {parameter, "anything"}});
        continue;
      }
      if (parameter == "sandbox_id" || parameter == "session_id") {
        Json arguments{{parameter, foreign}};
        for (const Json& required : tool["inputSchema"].value("required", Json::array()))
          if (const std::string key = required; !arguments.contains(key))
            arguments[key] = tool["inputSchema"]["properties"][key]["type"] == "array" ? Json::array({"x"}) : Json("x");
        expectRefused(*narrow, name, arguments);
        continue;
      }
      bool decided = false;
      for (const Attempt& attempt : kAttempts) {
        if (attempt.tool != name || attempt.parameter != parameter) continue;
        decided = true;
        // The session refuses commands and records them itself; a sandbox that is not of this server has its own
        // record.
        const bool own_record = parameter == "command" || parameter == "args" || contains(attempt.arguments, "FOREIGN");
        if (own_record) expectRefused(*narrow, name, argumentsOf(attempt, id, foreign));
        if (!own_record) expectRefusedFor(*narrow, name, parameter, argumentsOf(attempt, id, foreign));
      }
      for (const auto& free : kFree)
        for (const char* one : free.parameters) decided = decided || (free.tool == name && one == parameter);
      EXPECT_TRUE(decided) << name << "." << parameter << " is new: decide how the operator's policy bounds it";
    }
  }
  EXPECT_EQ(readFile(workspace / "secret/key"), "k");
  usual->call("sandbox_destroy", {{"sandbox_id", foreign}});
}

TEST_F(McpOperator, FixedChoicesAreNotParametersAndLowerValuesAreAccepted) {
  const auto narrow = startNarrow();
  const auto create_parameters = parametersOf(*narrow, "sandbox_create");
  EXPECT_EQ(create_parameters, (std::set<std::string>{"empty", "keep", "memory", "name", "timeout_seconds"}));
  const auto tools = toolsOf(*narrow);
  for (const std::string& taken : kTakenAway) EXPECT_FALSE(tools.contains(taken)) << taken;
  const Json made = narrow->tool(
      "sandbox_create",
      {{"memory", "128M"}, {"timeout_seconds", 300}, {"profile", "narrow"}, {"workspace_path", workspace.path()}});
  ASSERT_TRUE(made.contains("sandbox_id")) << made;
  EXPECT_EQ(made["profile"], "narrow");
  EXPECT_EQ(made["workspace"], workspace.path());
  const std::string id = made["sandbox_id"];
  const Json ran = narrow->tool("sandbox_execute", {{"sandbox_id", id},
                                                    {"command", "echo $MODE; cat secret/key || echo hidden"},
                                                    {"timeout_ms", 20000},
                                                    {"env", {{"MODE", "fixed"}, {"X", "y"}}}});
  EXPECT_EQ(ran["stdout"], "fixed\nhidden\n") << ran;
}

TEST_F(McpOperator, FlagsAloneFixTheirChoice) {
  const auto client = start(Json::object(), {"--net", "none", "--user", "sandbox", "--level", "full"});
  EXPECT_FALSE(toolsOf(*client).contains("sandbox_network"));
  const auto parameters = parametersOf(*client, "sandbox_create");
  EXPECT_FALSE(parameters.contains("root"));
  EXPECT_TRUE(parameters.contains("profile"));
  EXPECT_TRUE(parameters.contains("image"));
  // The operator decided about level and network, so the profile asks for no approval.
  const Json made = client->tool("sandbox_create", {{"profile", "web-fetch"}});
  ASSERT_TRUE(made.contains("sandbox_id")) << made;
  EXPECT_EQ(made["network"], "none");
  expectRefused(*client, "sandbox_network", {{"sandbox_id", made["sandbox_id"]}, {"host", "example.org"}});
}

TEST_F(McpOperator, WorkspacesAreOnlyThoseOfTheFlag) {
  CONFORMS("R-SESSION-20");
  const TempDir second;
  second.write("b.txt", "b");
  second.openToAll();
  const Json roots{{"roots", Json::object()}, {"elicitation", Json::object()}};
  const auto client = start(roots, {"--workspace", workspace.path(), "--workspace", second.path() + ":ro"});
  EXPECT_TRUE(parametersOf(*client, "sandbox_create").contains("workspace_path"));
  EXPECT_EQ(client->tool("sandbox_create", {{"workspace_path", second.path()}})["workspace"], second.path());
  expectRefused(*client, "sandbox_create", {{"workspace_path", other.path()}});
  expectRefused(*client, "sandbox_create", {{"workspace_path", "/etc"}});
  const std::string id = create(*client, {{"workspace_path", second.path()}});
  client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "b.txt"}, {"content", "changed"}});
  expectRefused(*client, "sandbox_commit", {{"sandbox_id", id}});
  EXPECT_EQ(readFile(second / "b.txt"), "b");
  const auto empty = start(roots, {"--workspace", ":none"});
  EXPECT_EQ(empty->tool("sandbox_create", Json::object())["workspace"], "");
  expectRefused(*empty, "sandbox_create", {{"workspace_path", workspace.path()}});
}

TEST_F(McpOperator, DirectoryThatTheHostExecutesIsCommittedOnlyIfTheUserAgrees) {
  for (const char* directory : {".claude", ".vscode", ".github/workflows", ".config/nvim", ".git/hooks"}) {
    std::filesystem::create_directories(workspace / directory);
    workspace.openToAll();
    const auto client = start({{"elicitation", Json::object()}}, {"--workspace", workspace.path(), "--allow-commit"});
    const std::string id = create(*client, {{"workspace_path", workspace / directory}});
    client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "settings.json"}, {"content", "{}"}});
    const Json held = client->tool("sandbox_commit", {{"sandbox_id", id}});
    EXPECT_EQ(held["changes"], 0) << held;
    const Json commit{{"name", "sandbox_commit"}, {"arguments", {{"sandbox_id", id}, {"paths", {"settings.json"}}}}};
    const Json asked = client->request("tools/call", commit)["result"];
    ASSERT_TRUE(asked.contains("inputRequests")) << directory << asked;
    const std::string question = asked["inputRequests"].dump();
    EXPECT_NE(question.find("careful"), std::string::npos) << question;
    EXPECT_EQ(question.find("30 days"), std::string::npos) << question;
    EXPECT_FALSE(std::filesystem::exists(workspace / directory + "/settings.json")) << directory;
  }
}

/// Without a repository: the operator's directory gives its files their meaning.
TEST_F(McpOperator, WorkspaceBelowIsJudgedFromTheDirectoryOfTheFlag) {
  for (const char* directory : {"tools/vscode", ".storybook", "conf"}) {
    std::filesystem::create_directories(workspace / directory);
  }
  workspace.write("conf/local.txt", "canary\n");
  ASSERT_EQ(::symlink("tools/vscode", (workspace / ".vscode").c_str()), 0);
  ASSERT_EQ(::symlink("conf/local.txt", (workspace / ".env.local").c_str()), 0);
  workspace.openToAll();
  const auto client = start(Json::object(), {"--workspace", workspace.path(), "--allow-commit"});
  for (const auto& [directory, file] :
       {std::pair("tools", "vscode/tasks.json"), {"tools/vscode", "tasks.json"}, {".storybook", "a.md"}}) {
    const std::string id = create(*client, {{"workspace_path", workspace / directory}});
    client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", file}, {"content", "{}"}});
    EXPECT_EQ(client->tool("sandbox_commit", {{"sandbox_id", id}})["changes"], 0) << directory;
    EXPECT_FALSE(std::filesystem::exists(workspace / directory + "/" + file)) << directory;
  }
  const std::string id = create(*client, {{"workspace_path", workspace / "conf"}});
  const Json read = client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat local.txt; true"}});
  EXPECT_EQ(read["stdout"], "") << read;
}

TEST_F(McpOperator, DeniedPathsStayDeniedInAWorkspaceBelowOrAbove) {
  workspace.write("src/key.txt", "canary\n");
  workspace.write("lib/a/key.dump", "canary\n");
  workspace.write("lib/a/code.c", "visible\n");
  workspace.openToAll();
  const auto client =
      start(Json::object(), {"--workspace", workspace.path(), "--deny", "src", "--deny", "lib/a/*.dump"});
  expectRefused(*client, "sandbox_create", {{"workspace_path", workspace / "src"}});
  for (const char* directory : {"", "/lib", "/lib/a"}) {
    const std::string id = create(*client, {{"workspace_path", workspace.path() + directory}});
    const Json read =
        client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "find . -type f -exec cat {} +; true"}});
    EXPECT_EQ(read["stdout"].get<std::string>().find("canary"), std::string::npos) << directory << read;
    EXPECT_NE(read["stdout"].get<std::string>().find("visible"), std::string::npos) << directory << read;
  }
  const auto below = start(Json::object(),
                           {"--workspace", workspace / "lib", "--workspace", workspace.path(), "--deny", "a/key.dump"});
  const std::string id = create(*below, {{"workspace_path", workspace.path()}});
  const Json read = below->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat lib/a/key.dump; true"}});
  EXPECT_EQ(read["stdout"], "") << read;
}

TEST_F(McpOperator, DirectoryThatIsReadOnlyIsWrittenByNoCommitFromAbove) {
  workspace.write("vendor/v.txt", "before\n");
  workspace.openToAll();
  const auto client = start(
      Json::object(), {"--workspace", workspace.path(), "--workspace", workspace / "vendor" + ":ro", "--allow-commit"});
  const std::string id = create(*client, {{"workspace_path", workspace.path()}});
  client->tool("sandbox_execute",
               {{"sandbox_id", id}, {"command", "echo x > vendor/v.txt; echo x > vendor/w.txt; echo x > own.txt"}});
  for (const Json& paths : {Json::array(), Json({"vendor/v.txt", "vendor", "own.txt"})}) {
    client->tool("sandbox_commit", {{"sandbox_id", id}, {"paths", paths}});
    EXPECT_EQ(readFile(workspace / "vendor/v.txt"), "before\n");
    EXPECT_FALSE(std::filesystem::exists(workspace / "vendor/w.txt"));
  }
  EXPECT_EQ(readFile(workspace / "own.txt"), "x\n");
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "rm -r vendor"}});
  client->tool("sandbox_commit", {{"sandbox_id", id}, {"paths", {"vendor"}}});
  EXPECT_EQ(readFile(workspace / "vendor/v.txt"), "before\n");
}

TEST_F(McpOperator, ReadOnlyServerRunsCommandsAndWritesNothing) {
  CONFORMS("R-SESSION-21");
  const auto client = start(Json::object(), {"--read-only"});
  const auto tools = toolsOf(*client);
  EXPECT_TRUE(tools.contains("sandbox_execute"));
  for (const char* taken :
       {"sandbox_write_file", "sandbox_edit_file", "sandbox_upload", "sandbox_restore", "sandbox_commit"})
    EXPECT_FALSE(tools.contains(taken)) << taken;
  const std::string id = create(*client);
  EXPECT_EQ(
      client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "echo changed > a.txt && cat a.txt"}})["stdout"],
      "changed\n");
  expectRefused(*client, "sandbox_write_file", {{"sandbox_id", id}, {"path", "a.txt"}, {"content", "x"}});
  expectRefused(*client, "sandbox_upload", {{"sandbox_id", id}, {"path", "a.txt"}, {"content", "x"}});
  expectRefused(*client, "sandbox_commit", {{"sandbox_id", id}});
  EXPECT_EQ(readFile(workspace / "a.txt"), "from the host\n");
}

TEST_F(McpOperator, CachesOfModelsReachNoSandboxOfTheUser) {
  const auto userSees = [&] {
    return runCaisson({"run", "-q", "--workspace", workspace.path(), "--", "ls", "-A", "/cache"},
                      {.env = environment()});
  };
  const Json write = {{"command", "echo x > /cache/planted && ls -A /cache"}};
  for (const bool read_only : {false, true}) {
    const auto client =
        start(Json::object(), read_only ? std::vector<std::string>{"--read-only"} : std::vector<std::string>());
    for (const char* again : {"first", "second"}) {
      const std::string id = create(*client);
      Json call = write;
      call["sandbox_id"] = id;
      EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "ls -A /cache"}})["stdout"],
                read_only || again == std::string("first") ? "" : "planted\n")
          << again;
      EXPECT_EQ(client->tool("sandbox_execute", call)["stdout"], "planted\n");
    }
    const RunOutput seen = userSees();
    EXPECT_EQ(seen.exit_status, 0) << seen.describe();
    EXPECT_EQ(seen.out, "") << seen.describe();
  }
}

TEST_F(McpOperator, ToolsListsOnlyTheseAndWhatTheyNeed) {
  CONFORMS("R-SESSION-21");
  const auto client = start(Json::object(), {"--tools", "sandbox_execute,sandbox_read_file"});
  EXPECT_EQ(toolsOf(*client),
            (std::set<std::string>{"sandbox_create", "sandbox_execute", "sandbox_process", "sandbox_read_file"}));
  const std::string id = create(*client);
  expectRefused(*client, "sandbox_write_file", {{"sandbox_id", id}, {"path", "x"}, {"content", "x"}});
  EXPECT_EQ(client->tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "a.txt"}})["content"], "from the host\n");
}

TEST_F(McpOperator, WrongFlagsAreErrorsAtTheStart) {
  const std::string runtime = other.write("runtime.toml", "extends = \"dev\"\nisolation.runtime = \"crun\"\n");
  other.openToAll();
  const struct {
    std::vector<std::string> flags;
    const char* message;
  } cases[] = {
      {{"--tools", "sandbox_fly"}, "there is no such tool"},
      {{"--tools", "sandbox_commit", "--read-only"}, "another flag takes this tool away"},
      {{"--read-only", "--allow-commit"}, "lets nothing be committed"},
      {{"--read-only", "--rw", workspace.path()}, "shows this host path writable"},
      {{"--workspace", workspace.path() + ":rw"}, "keeps its changes apart"},
      {{"--workspace", workspace / "missing"}, "No such file"},
      {{"--max-sandboxes", "0"}, "expected a number above 0"},
      {{"--ttl", "soon"}, "expected a time"},
      {{"--allow-host", "example.org"}, "network mode `proxy`"},
      {{"--profile", "unheard-of"}, "unheard-of"},
      {{"--memory", "much"}, "--memory: invalid size \"much\""},
      {{"--policy", runtime, "--allow-weaker", "runtime"}, "a session cannot use crun"},
      {{"--net", "host", "--approve", "net:host"}, "--net host: a session cannot use the host's network"},
      {{"--level", "none", "--approve", "level:none"}, "--level none: a session cannot run without isolation"},
  };
  for (const auto& [flags, message] : cases) {
    std::vector<std::string> line{"mcp"};
    line.insert(line.end(), flags.begin(), flags.end());
    const RunOutput output = runCaisson(line, {.stdin_data = "", .env = environment()});
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_NE(output.err.find(message), std::string::npos) << output.describe();
  }
}

TEST_F(McpOperator, NumberOfSandboxesIsBounded) {
  CONFORMS("R-SESSION-22");
  const auto client = start(Json::object(), {"--max-sandboxes", "2"});
  const std::string first = create(*client);
  const std::string second = create(*client);
  expectRefused(*client, "sandbox_create", Json::object());
  expectRefused(*client, "sandbox_fork", {{"sandbox_id", first}});
  client->tool("sandbox_destroy", {{"sandbox_id", second}});
  EXPECT_TRUE(client->tool("sandbox_fork", {{"sandbox_id", first}}).contains("sandbox_id"));
}

TEST_F(McpOperator, BackgroundCommandHasTheOperatorsTimeLimit) {
  const auto client = start(Json::object(), {"--timeout", "2s"});
  const std::string id = create(*client);
  const Json started =
      client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "sleep 600"}, {"background", true}});
  ASSERT_EQ(started["status"], "running") << started;
  const Json ended =
      client->tool("sandbox_process", {{"sandbox_id", id}, {"exec_id", started["exec_id"]}, {"wait_ms", 30000}});
  EXPECT_EQ(ended["status"], "timed_out") << ended;
}

TEST_F(McpOperator, ProjectFileCountsOnlyWithConsent) {
  workspace.write("caisson.toml", "extends = \"dev\"\nname = \"of-the-project\"\n[resources]\nmemory = \"200M\"\n");
  workspace.openToAll();
  EXPECT_EQ(start()->tool("sandbox_create", {{"empty", true}})["profile"], "dev");
  const auto trusting = start(Json::object(), {"--trust"});
  EXPECT_EQ(trusting->tool("sandbox_create", {{"empty", true}})["profile"], "of-the-project");
  EXPECT_FALSE(parametersOf(*trusting, "sandbox_create").contains("profile"));
  expectRefused(*trusting, "sandbox_create", {{"memory", "300M"}});
  const std::string log = runCaisson({"audit", "show", "--json"}, {.env = environment()}).out;
  EXPECT_NE(log.find("--trust on the command line"), std::string::npos) << log;
}

}  // namespace
}  // namespace caisson::test
