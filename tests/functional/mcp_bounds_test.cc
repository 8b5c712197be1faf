// The operator's policy of `caisson mcp` beyond the parameters of tools: resources, prompts, completion, tasks, and
// sandboxes of other processes.
#include <algorithm>
#include <set>

#include "functional/busybox_root.h"
#include "functional/sandbox.h"
#include "functional/terminal.h"
#include "mcp_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr const char* kSecret = "canary-of-the-operator";
constexpr int kInvalidParams = -32602;
constexpr int kUnknownMethod = -32601;

class McpBounds : public Mcp {
 protected:
  void SetUp() override {
    Mcp::SetUp();
    if (IsSkipped()) return;
    workspace.write("secret/key", kSecret);
    workspace.openToAll();
    policy = other.write("narrow.toml", R"(
extends = "dev"
name = "narrow"
[filesystem]
denied = ["/workspace/secret"]
[resources]
memory = "256M"
wall_seconds = 30
)");
    other.write("of-another-project", kSecret);
    other.openToAll();
  }
  [[nodiscard]] std::unique_ptr<McpClient> startNarrow() const {
    return start(Json::object(), {"--policy", policy, "--workspace", workspace.path() + ":ro", "--ttl", "10m"});
  }
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words) const {
    return runCaisson(words, {.env = environment()});
  }
  /// The recorded attempts so far, as lines of JSON.
  [[nodiscard]] std::vector<std::string> violations() const {
    std::vector<std::string> found;
    std::string log = caisson({"audit", "show", "--json"}).out;
    for (std::size_t end = 0; (end = log.find('\n')) != std::string::npos; log.erase(0, end + 1))
      if (contains(log.substr(0, end), "\"event\":\"policy_violation\"")) found.push_back(log.substr(0, end));
    return found;
  }
  /// Whether the newest recorded attempt has this text.
  [[nodiscard]] bool isRecorded(const std::string& text) const {
    const auto all = violations();
    return !all.empty() && contains(all.back(), text);
  }
  static std::set<std::string> namesOf(McpClient& client, const std::string& method, const std::string& list,
                                       const std::string& key) {
    std::set<std::string> names;
    const Json answer = client.request(method, Json::object());
    for (const Json& entry : answer["result"][list]) names.insert(entry[key].get<std::string>());
    return names;
  }
  /// Creates a session outside of any server; returns its id.
  [[nodiscard]] std::string createSession(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"session", "create"});
    const RunOutput made = caisson(flags);
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    return made.out.substr(0, made.out.find('\n'));
  }
  void expectForeignRefused(McpClient& client, const std::string& id, const std::string& reason) const {
    const Json refused = client.call("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}});
    EXPECT_EQ(refused.value("isError", false), true) << refused;
    EXPECT_TRUE(contains(refused.dump(), reason)) << refused;
    EXPECT_TRUE(isRecorded(reason)) << testing::PrintToString(violations());
  }

  /// Expects that the session is treated like one that does not exist.
  static void expectUnknown(McpClient& client, const std::string& id) {
    const std::string none = "cs-" + std::string(32, '0');
    for (const char* tool : {"sandbox_execute", "sandbox_read_file", "sandbox_info", "sandbox_destroy"}) {
      Json arguments{{"sandbox_id", id}};
      if (std::string_view(tool) == "sandbox_execute") arguments["command"] = "touch ro-probe";
      if (std::string_view(tool) == "sandbox_read_file") arguments["path"] = "a.txt";
      std::string refused = client.call(tool, arguments).dump();
      arguments["sandbox_id"] = none;
      const std::string unknown = client.call(tool, arguments).dump();
      ASSERT_TRUE(contains(unknown, "there is no such sandbox")) << unknown;
      for (std::size_t at = 0; (at = refused.find(id)) != std::string::npos;) refused.replace(at, id.size(), none);
      EXPECT_EQ(refused, unknown) << tool;
    }
    const Json read = client.request("resources/read", {{"uri", "caisson://" + id + "/fs/a.txt"}});
    EXPECT_TRUE(read.contains("error")) << read;
    EXPECT_FALSE(contains(client.tool("sandbox_list", Json::object()).dump(), id));
  }
  /// Grants an approval on a terminal.
  void grant(const std::vector<std::string>& words) const {
    std::vector<std::string> line{"/usr/bin/env", "CAISSON_HOME=" + (home / "state"), caissonBinary(), "approvals",
                                  "grant"};
    line.insert(line.end(), words.begin(), words.end());
    Terminal terminal(line, workspace.path());
    ASSERT_TRUE(terminal.shows("[y/N]")) << terminal.screen();
    sleepFor(std::chrono::milliseconds(200));  // input before the prompt is discarded
    terminal.type("y\n");
    ASSERT_EQ(terminal.wait(), 0) << terminal.screen();
  }

  const TempDir other;
  std::string policy;
};

/// Values that could reach further than a parameter should, by its schema.
std::vector<Json> extremesOf(const Json& schema, const std::string& other) {
  const std::string type = schema.value("type", "");
  if (schema.contains("enum")) return {schema["enum"].begin(), schema["enum"].end()};
  if (type == "integer")
    return {schema.value("minimum", Json(0)), schema.value("maximum", Json(INT64_MAX)), Json(-1), Json(INT64_MAX)};
  if (type == "boolean") return {Json(true), Json(false)};
  const std::vector<std::string> texts{
      "secret/key", "/workspace/secret/key",       "../secret/key",   "sub/../secret/key",
      other,        other + "/of-another-project", "../../../../etc", "/proc/1/root" + other + "/of-another-project",
      "",           std::string(100'000, 'a')};
  std::vector<Json> values(texts.begin(), texts.end());
  if (type == "array") return {Json(texts), Json::array({"secret"}), Json::array({other})};
  if (type == "object") return {Json{{"PATH", other}, {"LD_PRELOAD", other}, {"HOME", "/workspace/secret"}}};
  return values;
}

TEST_F(McpBounds, ExtremeParameterValuesRevealNothing) {
  CONFORMS("R-SESSION-20");
  const auto client = startNarrow();
  const std::string id = create(*client);
  const Json before = client->tool("sandbox_info", {{"sandbox_id", id}})["policy"];
  const Json listed = client->request("tools/list", Json::object())["result"]["tools"];
  ASSERT_GE(listed.size(), 10U);
  int tried = 0;
  for (const Json& tool : listed) {
    const std::string name = tool["name"];
    for (const auto& [parameter, schema] : tool["inputSchema"]["properties"].items()) {
      for (const Json& value : extremesOf(schema, other.path())) {
        Json arguments = Json::object();
        for (const Json& required : tool["inputSchema"].value("required", Json::array()))
          arguments[required.get<std::string>()] = required == "command" ? "true" : "a.txt";
        if (tool["inputSchema"]["properties"].contains("sandbox_id") && parameter != "session_id")
          arguments["sandbox_id"] = id;
        arguments[parameter] = value;
        const Json answer = client->request("tools/call", {{"name", name}, {"arguments", arguments}});
        ASSERT_FALSE(answer.is_null()) << name << " " << parameter << " has no answer";
        EXPECT_FALSE(contains(answer.dump(), kSecret)) << name << " " << arguments.dump().substr(0, 300);
        ++tried;
        const Json made = answer.value("result", Json::object()).value("structuredContent", Json::object());
        if (const std::string fresh = made.value("sandbox_id", ""); !fresh.empty() && fresh != id) {
          const Json info = client->tool("sandbox_info", {{"sandbox_id", fresh}});
          EXPECT_LE(info["expires_in_seconds"].get<double>(), 600) << name << " " << arguments;
          EXPECT_TRUE(info["workspace"] == "" || info["workspace"] == workspace.path()) << info;
          client->tool("sandbox_destroy", {{"sandbox_id", fresh}});
        }
      }
    }
  }
  EXPECT_GT(tried, 150);
  // A file of the workspace that a command reads is hidden as well.
  const std::string again = create(*client);
  const Json read =
      client->tool("sandbox_execute", {{"sandbox_id", again}, {"command", "cat secret/key; ls secret; true"}});
  EXPECT_FALSE(contains(read.dump(), kSecret)) << read;
  EXPECT_EQ(client->tool("sandbox_info", {{"sandbox_id", again}})["policy"], before);
  EXPECT_EQ(readFile(workspace / "secret/key"), kSecret);
  EXPECT_EQ(readFile(workspace / "a.txt"), "from the host\n");
}

TEST_F(McpBounds, HiddenFileIsRefusedAndRecordedAsAResourceAndInCompletion) {
  const auto client = startNarrow();
  const std::string id = create(*client);
  for (const std::string path : {"fs/secret/key", "fs/secret", "fs/./secret/key", "fs/a/../secret/key",
                                 "fs/%73ecret/key", "fs/secret/key?offset=0&limit=9", "root/workspace/secret/key"}) {
    const Json refused = client->request("resources/read", {{"uri", "caisson://" + id + "/" + path}});
    const char* reason = contains(path, "..") ? "No such file" : "the policy hides /workspace/secret";
    EXPECT_TRUE(contains(refused.dump(), reason)) << path << refused;
    EXPECT_EQ(refused["error"]["code"], kInvalidParams) << path << refused;
    EXPECT_FALSE(contains(refused.dump(), kSecret)) << path;
    EXPECT_TRUE(isRecorded("\"parameter\":\"uri\"")) << path;
  }
  const Json reference{{"type", "ref/resource"}, {"uri", "caisson://{sandbox_id}/fs/{+path}"}};
  const auto complete = [&](const std::string& begin) {
    return client->request("completion/complete", {{"ref", reference},
                                                   {"argument", {{"name", "path"}, {"value", begin}}},
                                                   {"context", {{"arguments", {{"sandbox_id", id}}}}}});
  };
  EXPECT_EQ(complete("secret/")["error"]["code"], kInvalidParams);
  EXPECT_TRUE(isRecorded("completion/complete"));
  EXPECT_TRUE(contains(complete("a").dump(), "a.txt"));
}

TEST_F(McpBounds, ResourcesAndPromptsAreLimitedToTheOfferedTools) {
  CONFORMS("R-SESSION-21");
  const auto everything = start();
  EXPECT_EQ(namesOf(*everything, "prompts/list", "prompts", "name").size(), 3U);
  const auto client = start(Json::object(), {"--tools", "sandbox_execute"});
  const std::string id = create(*client);
  EXPECT_EQ(namesOf(*client, "prompts/list", "prompts", "name"), std::set<std::string>{"run-project-in-sandbox"});
  const Json prompt =
      client->request("prompts/get", {{"name", "diagnose-denial"}, {"arguments", {{"sandbox_id", id}}}});
  EXPECT_EQ(prompt["error"]["code"], kInvalidParams) << prompt;
  for (const std::string& uri : namesOf(*client, "resources/templates/list", "resourceTemplates", "uriTemplate"))
    EXPECT_TRUE(contains(uri, "/exec/")) << uri;
  EXPECT_EQ(namesOf(*client, "resources/list", "resources", "uri"), std::set<std::string>{});
  for (const std::string& part : {id + "/fs/a.txt", id + "/info", id + "/audit", std::string("sandboxes")}) {
    const Json refused = client->request("resources/read", {{"uri", "caisson://" + part}});
    EXPECT_EQ(refused["error"]["code"], kInvalidParams) << part << refused;
    EXPECT_TRUE(isRecorded("does not offer")) << part;
  }
  const std::string exec =
      client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "echo out"}})["exec_id"].get<std::string>();
  const Json output = client->request("resources/read", {{"uri", "caisson://" + id + "/exec/" + exec + "/stdout"}});
  EXPECT_EQ(output["result"]["contents"][0]["text"], "out\n") << output;
}

TEST_F(McpBounds, ServerWithoutTheToolForCommandsServesNoTask) {
  const Json tasks{{"extensions", {{"io.modelcontextprotocol/tasks", Json::object()}}}};
  const auto first = start(tasks);
  const std::string id = create(*first, {{"keep", true}});
  const Json started = first->request(
      "tools/call",
      {{"name", "sandbox_execute"}, {"arguments", {{"sandbox_id", id}, {"command", "sleep 300"}, {"wait_ms", 0}}}});
  const std::string task = started["result"].value("taskId", "");
  ASSERT_FALSE(task.empty()) << started;
  const auto reader = start(tasks, {"--tools", "sandbox_read_file"});
  const Json discovered = reader->request("server/discover", Json::object())["result"];
  EXPECT_FALSE(discovered["capabilities"].contains("extensions")) << discovered;
  for (const char* method : {"tasks/get", "tasks/cancel", "tasks/update"})
    EXPECT_EQ(reader->request(method, {{"taskId", task}, {"inputResponses", Json::object()}})["error"]["code"],
              kUnknownMethod)
        << method;
  first->tool("sandbox_destroy", {{"sandbox_id", id}});
}

TEST_F(McpBounds, TaskOfASandboxBeyondThePolicyIsUnknown) {
  const Json tasks{{"extensions", {{"io.modelcontextprotocol/tasks", Json::object()}}}};
  const auto wide = start(tasks);
  const std::string id = create(*wide, {{"memory", "512M"}, {"keep", true}});
  const std::string task =
      wide->request("tools/call",
                    {{"name", "sandbox_execute"},
                     {"arguments", {{"sandbox_id", id}, {"command", "sleep 300"}, {"wait_ms", 0}}}})["result"]
          .value("taskId", "");
  const auto narrow = start(tasks, {"--memory", "256M"});
  for (const char* method : {"tasks/get", "tasks/cancel"}) {
    EXPECT_EQ(narrow->request(method, {{"taskId", task}})["error"]["code"], kInvalidParams) << method;
    EXPECT_TRUE(isRecorded("resources.memory")) << method;
  }
  EXPECT_EQ(wide->request("tasks/get", {{"taskId", task}})["result"]["status"], "working");
  wide->tool("sandbox_destroy", {{"sandbox_id", id}});
}

TEST_F(McpBounds, SandboxThatWritesToTheHostIsRefusedByAReadOnlyServer) {
  CONFORMS("R-SESSION-21");
  const std::string id = createSession({"--workspace", workspace.path(), "--rw", other.path()});
  const auto client = start(Json::object(), {"--read-only"});
  expectForeignRefused(*client, id, "its commands write to " + other.path());
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, SandboxThatShowsAnotherDirectoryIsRefused) {
  CONFORMS("R-SESSION-20");
  const std::string id = createSession({"--workspace", workspace.path(), "--ro", other.path()});
  const auto client = start(Json::object(), {"--workspace", workspace.path()});
  expectForeignRefused(*client, id, "filesystem.read_only");
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
  const std::string usual = createSession({"--workspace", workspace.path()});
  EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", usual}, {"command", "cat a.txt"}})["stdout"],
            "from the host\n");
  EXPECT_EQ(caisson({"session", "destroy", usual}).exit_status, 0);
}

TEST_F(McpBounds, SessionOfAnotherDirectoryIsUnknownUntilItIsApproved) {
  CONFORMS("R-SESSION-20");
  other.openToAll();
  const std::string id = createSession({"--workspace", other.path()});
  const auto client = start();
  create(*client);
  expectUnknown(*client, id);
  grant({"path:" + other.path(), "--for", "1h"});
  const Json arguments{{"sandbox_id", id}, {"command", "echo used"}};
  EXPECT_EQ(client->tool("sandbox_execute", arguments)["stdout"], "used\n");
  const std::string approvals = caisson({"approvals", "list", "--json"}).out;
  const std::string approval = Json::parse(approvals)[0]["id"];
  EXPECT_EQ(caisson({"approvals", "revoke", approval}).exit_status, 0);
  EXPECT_TRUE(contains(client->call("sandbox_execute", arguments).dump(), "there is no such sandbox"));
  EXPECT_EQ(caisson({"session", "exec", id, "--", "test", "-e", "ro-probe"}).exit_status, 1);
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, SessionWithMoreThanASandboxOfTheServerIsRefused) {
  CONFORMS("R-SESSION-20");
  struct {
    std::vector<std::string> flags;
    std::string reason;
  } const cases[] = {
      {{"--workspace", workspace.path(), "--rw", other.path()}, "filesystem.read_write"},
      {{"--workspace", workspace.path(), "--rw", workspace.path()}, "filesystem.read_write"},
      {{"--workspace", workspace.path(), "--show-secrets"}, "filesystem.workspace.show_secrets"},
      {{"--workspace", workspace.path(), "--show-file", ".env"}, "filesystem.workspace.show_files"},
      {{"--workspace", workspace.path(), "--host-port", "5432"}, "network.host_ports"},
      {{"--workspace", workspace.path() + ":rw", "--tier", "landlock"}, "its commands write to the real directory"},
  };
  const auto client = start();
  const auto with_flag = start(Json::object(), {"--env", "OTHER=decision"});
  for (const auto& [flags, reason] : cases) {
    const std::string id = createSession(flags);
    expectForeignRefused(*client, id, reason);
    expectForeignRefused(*with_flag, id, reason);
    const Json written =
        client->call("sandbox_execute", {{"sandbox_id", id}, {"command", "echo by-model > " + (other / "written")}});
    EXPECT_TRUE(contains(written.dump(), "caisson session exec " + id)) << written;
    EXPECT_FALSE(exists(other / "written")) << reason;
    const Json read = client->request("resources/read", {{"uri", "caisson://" + id + "/fs/a.txt"}});
    EXPECT_TRUE(read.contains("error")) << read;
    EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
  }
}

TEST_F(McpBounds, SandboxOfAnotherProfileThatTheModelMayChooseIsUsable) {
  const std::string id = create(*start(), {{"profile", "node"}, {"keep", true}});
  const std::string made = createSession({"--workspace", workspace.path(), "--profile", "bash", "--memory", "1G"});
  const auto client = start();
  for (const std::string& one : {id, made})
    EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", one}, {"command", "cat a.txt"}})["stdout"],
              "from the host\n");
  for (const std::string& one : {id, made}) client->tool("sandbox_destroy", {{"sandbox_id", one}});
}

TEST_F(McpBounds, SessionBelowLevelFullIsUsableOnlyWhileApproved) {
  CONFORMS("R-SESSION-20");
  const std::string id = createSession({"--workspace", workspace.path(), "--level", "process"});
  const auto client = start();
  expectForeignRefused(*client, id, "it sees the host's system files");
  const Json arguments{{"sandbox_id", id}, {"command", "echo used"}};
  EXPECT_TRUE(contains(client->call("sandbox_execute", arguments).dump(),
                       "caisson approvals grant level:process --session " + id));
  grant({"level:process", "--session", id});
  EXPECT_EQ(client->tool("sandbox_execute", arguments)["stdout"], "used\n");
  const std::string approval = Json::parse(caisson({"approvals", "list", "--json"}).out)[0]["id"];
  EXPECT_EQ(caisson({"approvals", "revoke", approval}).exit_status, 0);
  expectForeignRefused(*client, id, "it sees the host's system files");
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

/// Such a server has sandboxes of this tier where the host refuses namespaces.
TEST_F(McpBounds, SessionInTheLandlockTierIsUsableByAServerThatAcceptsTheTier) {
  const std::string id = createSession({"--workspace", workspace.path(), "--tier", "landlock"});
  expectForeignRefused(*start(), id, "the command runs without namespaces");
  const auto client = start(Json::object(), {"--allow-weaker", "landlock"});
  EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat a.txt"}})["stdout"],
            "from the host\n");
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, SessionThatShowsAPathBesideItsWorkspaceNeedsAnApprovalOfIt) {
  CONFORMS("R-SESSION-20");
  const auto client = start();
  const auto run = [&](const std::string& id) {
    return client->call("sandbox_execute",
                        {{"sandbox_id", id}, {"command", "cat " + (other / "of-another-project") + "; echo end"}});
  };
  const std::string id = createSession({"--workspace", workspace.path(), "--ro", other.path()});
  expectForeignRefused(*client, id, "the command can read " + other.path());
  EXPECT_FALSE(contains(run(id).dump(), kSecret));
  grant({"path:" + other.path(), "--for", "1h"});
  EXPECT_TRUE(contains(run(id).dump(), kSecret));
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
  // The model may see this one without an approval.
  const std::string open = createSession({"--workspace", workspace.path(), "--ro", workspace.path()});
  EXPECT_TRUE(contains(run(open).dump(), "end")) << run(open);
  EXPECT_EQ(caisson({"session", "destroy", open}).exit_status, 0);
}

TEST_F(McpBounds, SessionInARootOfTheClientIsUsable) {
  other.openToAll();
  const std::string id = createSession({"--workspace", other.path()});
  const auto client = start({{"roots", Json::object()}});
  Json params{{"name", "sandbox_execute"}, {"arguments", {{"sandbox_id", id}, {"command", "echo used"}}}};
  const Json asked = client->request("tools/call", params)["result"];
  ASSERT_TRUE(asked["inputRequests"].contains("roots")) << asked;
  const auto answer = [&](const std::string& root) {
    Json again = params;
    again["requestState"] = asked["requestState"];
    again["inputResponses"] = {{"roots", {{"roots", {{{"uri", "file://" + root}}}}}}};
    return client->request("tools/call", again)["result"].dump();
  };
  EXPECT_TRUE(contains(answer(workspace.path()), "there is no such sandbox"));
  EXPECT_TRUE(contains(answer(other.path()), "used"));
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, SandboxOfTheHttpApiIsUnknown) {
  const std::string id = createSession({"--workspace", workspace.path(), "--name", "http-abcdefghijklmnopqrstuvwx"});
  expectUnknown(*start(), id);
  expectUnknown(*start(Json::object(), {"--workspace", workspace.path()}), id);
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, ReadOnlyServerUsesNoSessionOfAnotherProcess) {
  CONFORMS("R-SESSION-21");
  const std::string id = createSession({"--workspace", workspace.path()});
  expectUnknown(*start(Json::object(), {"--read-only"}), id);
  EXPECT_EQ(caisson({"session", "exec", id, "--", "test", "-e", "ro-probe"}).exit_status, 1);
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, HintsNameOnlySandboxesOfThisServer) {
  const std::string id = createSession({"--workspace", workspace.path()});
  const auto client = start();
  const std::string own = create(*client);
  EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat a.txt"}})["stdout"],
            "from the host\n");
  const std::string unknown = client->call("sandbox_info", {{"sandbox_id", "cs-" + std::string(32, '0')}}).dump();
  EXPECT_TRUE(contains(unknown, own)) << unknown;
  EXPECT_FALSE(contains(unknown, id)) << unknown;
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(McpBounds, KeptSandboxOfTheOperatorsImageIsUsableByTheNextServer) {
  requireOrSkip(hasBusybox(), "no /bin/busybox on this machine");
  const TempDir root;
  installBusybox(root);
  const RunOutput imported = caisson({"image", "import", root.path(), "local/box:1"});
  ASSERT_EQ(imported.exit_status, 0) << imported.describe();
  const std::vector<std::string> flags{"--image", "local/box:1"};
  const std::string id = create(*start(Json::object(), flags), {{"keep", true}});
  const auto second = start(Json::object(), flags);
  const Json ran = second->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat a.txt"}});
  EXPECT_EQ(ran["stdout"], "from the host\n") << ran;
  // The name now means another image.
  root.write("etc/other", "x");
  ASSERT_EQ(caisson({"image", "import", root.path(), "local/box:1"}).exit_status, 0);
  expectForeignRefused(*start(Json::object(), flags), id, "filesystem.root");
  second->tool("sandbox_destroy", {{"sandbox_id", id}});
}

TEST_F(McpBounds, ApprovalForOneUseSurvivesAHostThatCannotBeOpened) {
  grant({"host:example.org"});
  const auto approvals = [&] { return caisson({"approvals", "list", "--json"}).out; };
  const auto client = start();
  const std::string id = create(*client);
  // The first host restarts the sandbox, which is refused while a process runs.
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "sleep 300"}, {"background", true}});
  const Json busy = client->call("sandbox_network", {{"sandbox_id", id}, {"host", "example.org"}});
  ASSERT_EQ(busy.value("isError", false), true) << busy;
  EXPECT_TRUE(contains(approvals(), "host:example.org")) << approvals();
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "curl --max-time 1 http://example.org/"}});
  EXPECT_TRUE(contains(approvals(), "host:example.org")) << approvals();
  const Json opened =
      client->tool("sandbox_network", {{"sandbox_id", id}, {"host", "example.org"}, {"stop_processes", true}});
  EXPECT_EQ(opened["allowed"], true) << opened;
  EXPECT_FALSE(contains(approvals(), "host:example.org")) << approvals();
}

/// `caisson agent` finds the session of a project by such a name.
TEST_F(McpBounds, NamesOfAgentSessionsAreRefused) {
  const auto client = start();
  const std::string id = create(*client);
  for (const std::string name : {"agent-app-0123456789", "agent-"}) {
    const Json created = client->call("sandbox_create", {{"name", name}});
    EXPECT_EQ(created.value("isError", false), true) << created;
    EXPECT_TRUE(contains(created.dump(), "reserved for the sessions of `caisson agent`")) << created;
    const Json forked = client->call("sandbox_fork", {{"sandbox_id", id}, {"name", name}});
    EXPECT_EQ(forked.value("isError", false), true) << forked;
  }
  EXPECT_FALSE(contains(sessions(), "agent-")) << sessions();
  create(*client, {{"name", "agents-of-mine"}});
}

}  // namespace
}  // namespace caisson::test
