// Files, outputs and audit records of sandboxes as resources of `caisson mcp`.
#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class McpResources : public Mcp {
 protected:
  void SetUp() override {
    Mcp::SetUp();
    client = start();
    id = create(*client);
  }
  void run(const std::string& command) const {
    const Json ran = client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", command}});
    EXPECT_EQ(ran["exit_code"], 0) << ran;
  }
  [[nodiscard]] Json read(const std::string& uri) const { return client->request("resources/read", {{"uri", uri}}); }
  [[nodiscard]] Json content(const std::string& uri) const {
    const Json answer = read(uri);
    return answer.contains("result") ? answer["result"]["contents"][0] : answer;
  }
  [[nodiscard]] std::string at(const std::string& rest) const { return "caisson://" + id + "/" + rest; }
  [[nodiscard]] std::vector<std::string> complete(const std::string& name, const std::string& value) const {
    const Json answer =
        client->request("completion/complete", {{"ref", {{"type", "ref/resource"}, {"uri", "caisson://x"}}},
                                                {"argument", {{"name", name}, {"value", value}}},
                                                {"context", {{"arguments", {{"sandbox_id", id}}}}}});
    return answer["result"]["completion"]["values"];
  }
  static std::string linkIn(const Json& result) {
    for (const Json& item : result["content"])
      if (item["type"] == "resource_link") return item["uri"];
    return "";
  }

  std::unique_ptr<McpClient> client;
  std::string id;
};

TEST_F(McpResources, FileIsReadByTheUriReturnedFromWritingIt) {
  const Json written =
      client->call("sandbox_write_file", {{"sandbox_id", id}, {"path", "new/a b%.txt"}, {"content", "text \xC3\xA4"}});
  const std::string uri = written["structuredContent"]["uri"];
  EXPECT_EQ(uri, at("fs/new/a%20b%25.txt"));
  EXPECT_EQ(linkIn(written), uri) << written;
  const Json text = content(uri);
  EXPECT_EQ(text["text"], "text \xC3\xA4") << text;
  EXPECT_EQ(text["mimeType"], "text/plain");
  run("printf '\\377\\000' > bytes");
  EXPECT_EQ(content(at("fs/bytes"))["blob"], "/wA=");
}

TEST_F(McpResources, DirectoryListsTheUrisOfItsEntries) {
  run("mkdir -p 'd/e f'; echo inner > 'd/e f/g'");
  const Json top = Json::parse(content(at("fs/"))["text"].get<std::string>());
  EXPECT_EQ(top["total_entries"], 2) << top;
  const Json below = Json::parse(content(at("fs/d/"))["text"].get<std::string>());
  const std::string next = below["entries"][0]["uri"];
  const Json inner = Json::parse(content(next)["text"].get<std::string>());
  EXPECT_EQ(content(inner["entries"][0]["uri"])["text"], "inner\n") << inner;
}

TEST_F(McpResources, UrisCannotReachOtherFiles) {
  CONFORMS("R-FILES-11");
  run("ln -s /etc/passwd link; ln -s / root; mkfifo pipe; truncate -s 2M large");
  for (const char* rest :
       {"fs/../../etc/passwd", "fs/%2e%2e/%2e%2e/etc/passwd", "fs//etc/passwd", "fs/%2Fetc/passwd", "fs/a%00", "fs/%zz",
        "fs/pipe", "fs/large", "fs/none", "fs/root/proc/1/environ", "exec/x999/stdout", "exec/b7/stdout",
        "exec/x1/nothing", "exec", "audit/more", "nothing", ""}) {
    const Json answer = read(at(rest));
    EXPECT_TRUE(answer.contains("error")) << rest << answer;
  }
  // A link resolves inside the sandbox, so it cannot reach the host.
  const Json inside = client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat /etc/passwd"}});
  EXPECT_EQ(content(at("fs/link"))["text"], inside["stdout"]);
  EXPECT_TRUE(read(at("root" + workspace.path() + "/a.txt")).contains("error"));
}

TEST_F(McpResources, OutputOfABackgroundCommandIsAResource) {
  const Json started = client->tool(
      "sandbox_execute", {{"sandbox_id", id}, {"command", "seq 1 20000"}, {"background", true}, {"wait_ms", 5000}});
  EXPECT_EQ(started["truncated"], true) << started.dump().substr(0, 300);
  const std::string whole = content(started["full_output_uri"])["text"];
  EXPECT_EQ(whole.size(), 108894U);
  EXPECT_TRUE(whole.ends_with("\n20000\n"));
}

TEST_F(McpResources, ACutOutputHasALink) {
  const Json ran = client->call("sandbox_execute", {{"sandbox_id", id}, {"command", "seq 1 20000"}});
  const std::string uri = ran["structuredContent"]["full_output_uri"];
  EXPECT_EQ(linkIn(ran), uri);
  EXPECT_TRUE(content(uri)["text"].get<std::string>().ends_with("\n20000\n"));
}

TEST_F(McpResources, AuditLogContainsOnlyTheCommandsOfThisSandbox) {
  const std::string other = create(*client);
  run("echo of-this-one");
  client->tool("sandbox_execute", {{"sandbox_id", other}, {"command", "echo of-the-other"}});
  const Json info = client->call("sandbox_info", {{"sandbox_id", id}});
  EXPECT_EQ(info["structuredContent"]["audit_uri"], at("audit"));
  EXPECT_EQ(linkIn(info), at("audit"));
  const std::string text = content(at("audit"))["text"];
  EXPECT_TRUE(contains(text, "of-this-one")) << text;
  EXPECT_FALSE(contains(text, "of-the-other")) << text;
  const Json record = Json::parse(text);
  EXPECT_EQ(record["truncated"], false);
  EXPECT_EQ(record["total_events"], record["events"].size());
}

TEST_F(McpResources, AreListedAndCompleted) {
  const Json listed = client->request("resources/list", Json::object())["result"]["resources"];
  for (const char* rest : {"info", "fs/", "root/", "audit"}) {
    bool found = false;
    for (const Json& one : listed) found = found || one["uri"] == at(rest);
    EXPECT_TRUE(found) << rest << listed;
  }
  run("mkdir -p src/main; touch src/map.c src/other.c");
  EXPECT_EQ(complete("path", "src/ma"), (std::vector<std::string>{"src/main/", "src/map.c"}));
  EXPECT_EQ(complete("path", "s"), (std::vector<std::string>{"src/"}));
  EXPECT_EQ(complete("path", "../"), (std::vector<std::string>{}));
  EXPECT_EQ(complete("sandbox_id", id.substr(0, 6)).size(), 1U);
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}, {"background", true}});
  EXPECT_EQ(complete("exec_id", "b"), (std::vector<std::string>{"b1"}));
}

}  // namespace
}  // namespace caisson::test
