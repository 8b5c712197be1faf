// The network of `caisson mcp`: a model requests a host, the owner decides, the egress enforces it.
#include <ctime>
#include <utility>

#include "functional/mcp_client.h"
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Json = nlohmann::json;

class McpNetwork : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
    const std::string policy = files.write("none.toml",
                                           "extends = \"bash\"\n[network]\nmode = \"none\"\nallowed_hosts = "
                                           "[\"evil.test\"]\ndns_servers = [\"93.184.0.2\"]\n");
    const RunOutput made = caisson({"session", "create", "--policy", policy, "--workspace", ":none"});
    ASSERT_EQ(made.exit_status, 0) << made.describe();
    id_ = made.out.substr(0, made.out.find('\n'));
    client_ = start({{"elicitation", Json::object()}});
  }
  void TearDown() override {
    client_.reset();
    if (!id_.empty()) caisson({"session", "destroy", id_});
  }
  [[nodiscard]] std::unique_ptr<McpClient> start(Json capabilities) const {
    return std::make_unique<McpClient>(
        std::vector<std::string>{}, std::map<std::string, std::string>{{"CAISSON_HOME", home_}, {"CAISSON_LOG", "off"}},
        std::move(capabilities));
  }
  RunOutput caisson(const std::vector<std::string>& words) const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    return runCaisson(words, how);
  }
  [[nodiscard]] Json wanted(const std::string& host) const {
    return {{"name", "sandbox_network"},
            {"arguments", {{"sandbox_id", id_}, {"host", host}, {"stop_processes", true}}}};
  }
  Json ask(const std::string& host) { return client_->request("tools/call", wanted(host))["result"]; }
  Json answer(const std::string& host, const Json& asked, const std::string& decision) {
    Json again = wanted(host);
    again["requestState"] = asked["requestState"];
    again["inputResponses"] = {{"approval", {{"action", "accept"}, {"content", {{"decision", decision}}}}}};
    return client_->request("tools/call", again)["result"];
  }
  Json fetch(const std::string& host) {
    return client_->tool("sandbox_execute",
                         {{"sandbox_id", id_}, {"command", ":; curl -sS --max-time 5 http://" + host + "/a"}});
  }
  bool reaches(const std::string& host) { return fetch(host).value("stdout", "") == host + " /a from 80\n"; }
  [[nodiscard]] Json approvals() const { return caisson({"approvals", "list", "--json"}).json(); }

  std::string home_, id_;
  std::unique_ptr<McpClient> client_;
};

TEST_F(McpNetwork, OnlyTheApprovedHostIsReached) {
  CONFORMS("R-NETWORK-15");
  EXPECT_FALSE(reaches("example.org"));
  const Json asked = ask("Example.org");
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  const std::string words = asked["inputRequests"]["approval"]["params"]["message"];
  EXPECT_TRUE(contains(words, "reach example.org over")) << words;
  EXPECT_FALSE(reaches("example.org"));
  const Json denied = answer("Example.org", asked, "deny");
  EXPECT_EQ(denied["isError"], true) << denied;
  EXPECT_FALSE(reaches("example.org"));
  EXPECT_EQ(answer("Example.org", asked, "allow")["isError"], true);  // was not offered
  const Json allowed = answer("Example.org", asked, "allow for this sandbox")["structuredContent"];
  EXPECT_EQ(allowed["allowed"], true) << allowed;
  EXPECT_EQ(allowed["allowed_hosts"], Json::array({"example.org"})) << allowed;
  EXPECT_TRUE(reaches("example.org"));
  // Listed in a policy without network, so the owner has not approved it.
  const Json refused = fetch("evil.test");
  EXPECT_FALSE(contains(refused["stdout"], "from 80")) << refused;
  ASSERT_TRUE(refused.contains("denials") && refused["denials"].is_array()) << refused;
  EXPECT_TRUE(contains(refused["denials"][0]["remedy"], "sandbox_network")) << refused;
  const Json kept = approvals();
  ASSERT_EQ(kept.size(), 1U) << kept;
  EXPECT_EQ(kept[0]["what"], "host:example.org");
  EXPECT_EQ(kept[0]["session"], id_);
}

/// Before a command whose program is a network client the user is asked; the model need not know sandbox_network.
TEST_F(McpNetwork, ANetworkClientIsOfferedItsHostBeforeItFails) {
  CONFORMS("R-NETWORK-16");
  const Json command{{"name", "sandbox_execute"},
                     {"arguments", {{"sandbox_id", id_}, {"command", "curl -sS --max-time 5 http://example.org/a"}}}};
  const auto run = [&](const Json& asked, const std::string& decision) {
    Json again = command;
    again["requestState"] = asked["requestState"];
    again["inputResponses"] = {{"approval", {{"action", "accept"}, {"content", {{"decision", decision}}}}}};
    return client_->request("tools/call", again)["result"];
  };
  const Json asked = client_->request("tools/call", command)["result"];
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  const std::string words = asked["inputRequests"]["approval"]["params"]["message"];
  EXPECT_TRUE(contains(words, "reach example.org over")) << words;
  EXPECT_TRUE(contains(words, "`curl`")) << words;
  const Json denied = run(asked, "deny")["structuredContent"];
  EXPECT_EQ(denied["status"], "exited") << denied;
  EXPECT_NE(denied["exit_code"], 0) << denied;
  EXPECT_TRUE(contains(denied.dump(), "sandbox_network")) << denied;
  EXPECT_NE(client_->request("tools/call", command)["result"].value("resultType", ""), "input_required")
      << "asked once";
  // A client that cannot ask does not wait, and gets the hint.
  const Json silent = start(Json::object())->request("tools/call", command)["result"]["structuredContent"];
  EXPECT_NE(silent["exit_code"], 0) << silent;
  EXPECT_TRUE(contains(silent.dump(), "sandbox_network")) << silent;
  client_ = start({{"elicitation", Json::object()}});
  const Json again = client_->request("tools/call", command)["result"];
  ASSERT_EQ(again["resultType"], "input_required") << again;
  const Json allowed = run(again, "allow for this sandbox")["structuredContent"];
  EXPECT_EQ(allowed["stdout"], "example.org /a from 80\n") << allowed;
}

TEST_F(McpNetwork, ARevokedHostIsClosedAtOnceAlsoForWhatRuns) {
  const Json allowed = answer("example.org:5432", ask("example.org:5432"), "allow for this sandbox");
  ASSERT_EQ(allowed["structuredContent"]["allowed"], true) << allowed;
  const Json started = client_->tool(
      "sandbox_execute", {{"sandbox_id", id_},
                          {"background", true},
                          {"command", "bash"},
                          {"args", {"-c", "exec 3<>/dev/tcp/example.org/5432; head -1 <&3; cat <&3; echo cut"}}});
  const Json process{{"sandbox_id", id_}, {"exec_id", started["exec_id"]}, {"wait_ms", 200}};
  ASSERT_TRUE(eventually([&] { return client_->tool("sandbox_process", process)["stdout"] == "welcome\n"; }));
  ASSERT_EQ(caisson({"approvals", "revoke", approvals()[0]["id"]}).exit_status, 0);
  EXPECT_TRUE(eventually([&] { return client_->tool("sandbox_process", process)["stdout"] == "welcome\ncut\n"; }));
  EXPECT_EQ(ask("example.org:5432")["resultType"], "input_required");
}

TEST_F(McpNetwork, BackgroundRequestIsRecordedWhileCommandRuns) {
  const Json allowed = answer("example.org", ask("example.org"), "allow for this sandbox");
  ASSERT_EQ(allowed["structuredContent"]["allowed"], true) << allowed;
  client_->tool(
      "sandbox_execute",
      {{"sandbox_id", id_}, {"background", true}, {"command", "curl -sS http://example.org/from-mcp; sleep 60"}});
  ASSERT_TRUE(eventually([] { return contains(requestsSeen(), " example.org /from-mcp "); }));
  EXPECT_TRUE(eventually([&] {
    return contains(caisson({"audit", "show", "--json", "--event", "proxy_request"}).out, "\"host\":\"example.org\"");
  }));
}

TEST_F(McpNetwork, AnApprovalThatExpiresClosesItsHost) {
  // The state after `caisson approvals grant host:example.org --for 4s`.
  const std::int64_t now = ::time(nullptr);
  files.makeDir("home/approvals", 0700);
  files.write("home/approvals/approvals.json",
              Json{{"format_version", 1},
                   {"approvals",
                    {{{"id", "0123456789abcdef"},
                      {"what", "host:example.org"},
                      {"scope", "time"},
                      {"session", ""},
                      {"given", now - 1},
                      {"expires", now + 4},
                      {"by", "terminal"}}}}}
                  .dump(),
              0600);
  const Json allowed = ask("example.org")["structuredContent"];  // no prompt: an approval exists
  ASSERT_EQ(allowed["allowed"], true) << allowed;
  EXPECT_TRUE(reaches("example.org"));
  EXPECT_TRUE(eventually([&] {
    const Json info = client_->tool("sandbox_info", {{"sandbox_id", id_}});
    return !info.contains("allowed_hosts");
  }));
  EXPECT_FALSE(reaches("example.org"));
}

TEST_F(McpNetwork, ForkNeedsAnotherApproval) {
  ASSERT_EQ(answer("example.org", ask("example.org"), "allow for this sandbox")["structuredContent"]["allowed"], true);
  EXPECT_TRUE(reaches("example.org"));
  const Json branch = client_->tool("sandbox_fork", {{"sandbox_id", id_}, {"stop_processes", true}});
  const std::string first = std::exchange(id_, branch["sandbox_id"].get<std::string>());
  EXPECT_FALSE(reaches("example.org"));
  EXPECT_EQ(ask("example.org")["resultType"], "input_required");
  client_->tool("sandbox_destroy", {{"sandbox_id", id_}});
  id_ = first;
}

TEST_F(McpNetwork, ClientWithoutElicitationGetsTheCommand) {
  client_ = start(Json::object());
  const Json refused = ask("example.org");
  EXPECT_EQ(refused["isError"], true) << refused;
  const std::string hint = refused["structuredContent"]["hint"];
  EXPECT_TRUE(contains(hint, "`caisson approvals grant host:example.org --session " + id_ + "`")) << hint;
  EXPECT_FALSE(reaches("example.org"));
}

TEST_F(McpNetwork, HostCanBeClosedAndInvalidHostsAreRejected) {
  ASSERT_EQ(answer("example.org", ask("example.org"), "allow for this sandbox")["structuredContent"]["allowed"], true);
  const Json closed =
      client_->tool("sandbox_network", {{"sandbox_id", id_}, {"host", "example.org"}, {"action", "close"}});
  EXPECT_EQ(closed["allowed"], false) << closed;
  EXPECT_FALSE(reaches("example.org"));
  for (const char* host : {"", "*", "a b", "http://example.org/", "example.org:0", "example.org\n",
                           "ex\xC3\xA4mple.org", "*.*", "example.org:99999"})
    EXPECT_EQ(ask(host)["isError"], true) << host;
  for (const char* reason : {"a\u202Eb", "a\u3164b", "a\u00ADb"}) {
    EXPECT_EQ(client_->call("sandbox_network", {{"sandbox_id", id_}, {"host", "example.org"}, {"reason", reason}})
                  .value("isError", false),
              true)
        << reason;
  }
}

TEST_F(McpNetwork, MetadataServiceIsDeniedWithoutAPrompt) {
  CONFORMS("R-NETWORK-5");
  for (const char* host :
       {"169.254.169.254", "169.254.169.254:80", "100.100.100.200", "[fd00:ec2::254]", "metadata.google.internal"}) {
    const Json asked = ask(host);
    EXPECT_EQ(asked.value("isError", false), true) << host << asked;
    EXPECT_NE(asked["resultType"], "input_required") << host << asked;
  }
  EXPECT_EQ(approvals(), Json::array());
}

TEST_F(McpNetwork, ProcessesAreNotStoppedUnlessRequested) {
  const Json running =
      client_->tool("sandbox_execute", {{"sandbox_id", id_}, {"command", "sleep 300"}, {"background", true}});
  ASSERT_EQ(running["status"], "running") << running;
  Json gentle = wanted("example.org");
  gentle["arguments"].erase("stop_processes");
  const Json asked = client_->request("tools/call", gentle)["result"];
  gentle["requestState"] = asked["requestState"];
  gentle["inputResponses"] = {
      {"approval", {{"action", "accept"}, {"content", {{"decision", "allow for this sandbox"}}}}}};
  EXPECT_EQ(client_->request("tools/call", gentle)["result"]["isError"], true);
  EXPECT_EQ(client_->tool("sandbox_process",
                          {{"sandbox_id", id_}, {"exec_id", running["exec_id"]}, {"wait_ms", 100}})["status"],
            "running");
  EXPECT_EQ(ask("example.org")["structuredContent"]["allowed"], true);  // the answer was stored
}

}  // namespace
}  // namespace caisson::test
