// File tools of `caisson mcp`: they see what a command in the sandbox sees, with its rights, and carry files between
// sandboxes and to the client.
#include <unistd.h>

#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class McpFiles : public Mcp {
 protected:
  void SetUp() override {
    Mcp::SetUp();
    if (IsSkipped()) return;
    other.write("canary", "of the host\n");
    other.openToAll();
  }
  void begin(std::vector<std::string> flags = {}) {
    client = start(Json::object(), std::move(flags));
    id = create(*client);
  }
  Json call(const std::string& tool, Json arguments) const {
    if (!arguments.contains("sandbox_id")) arguments["sandbox_id"] = id;
    return client->call(tool, std::move(arguments));
  }
  Json tool(const std::string& name, Json arguments) const {
    const Json result = call(name, std::move(arguments));
    return result.value("structuredContent", result);
  }
  std::string run(const std::string& command) const {
    const Json ran = tool("sandbox_execute", {{"command", command}});
    EXPECT_EQ(ran["exit_code"], 0) << command << ran;
    return ran.value("stdout", "");
  }
  [[nodiscard]] Json read(const std::string& path) const { return tool("sandbox_read_file", {{"path", path}}); }
  /// An error result with a reason and, unless `remedy` is empty, with that in its hint.
  static void expectRefused(const Json& result, const std::string& reason, const std::string& remedy = "") {
    EXPECT_EQ(result.value("isError", false), true) << result;
    const Json value = result.value("structuredContent", result);
    EXPECT_TRUE(contains(value.dump(), reason)) << reason << " is not in " << value;
    EXPECT_TRUE(contains(value.value("hint", ""), remedy)) << value;
  }
  static Json linkIn(const Json& result) {
    for (const Json& item : result["content"])
      if (item["type"] == "resource_link") return item;
    return {};
  }
  [[nodiscard]] Json resource(const std::string& uri) const {
    const Json answer = client->request("resources/read", {{"uri", uri}});
    return answer.contains("result") ? answer["result"]["contents"][0] : answer;
  }

  const TempDir other;
  std::unique_ptr<McpClient> client;
  std::string id;
};

TEST_F(McpFiles, WorkingDirMayBeRelative) {
  begin();
  run("mkdir -p sub/deep");
  for (const auto& [directory, expected] :
       std::vector<std::pair<std::string, std::string>>{{"sub", "/workspace/sub\n"},
                                                        {"./sub/deep/", "/workspace/sub/deep\n"},
                                                        {"sub/../sub", "/workspace/sub\n"},
                                                        {".", "/workspace\n"},
                                                        {"/tmp", "/tmp\n"},
                                                        {"../tmp", "/tmp\n"}}) {
    EXPECT_EQ(tool("sandbox_execute", {{"command", "pwd"}, {"working_dir", directory}})["stdout"], expected);
    EXPECT_EQ(
        tool("sandbox_execute",
             {{"command", "pwd"}, {"working_dir", directory}, {"background", true}, {"wait_ms", 20000}})["stdout"],
        expected);
  }
  expectRefused(call("sandbox_execute", {{"command", "pwd"}, {"working_dir", "missing"}}), "/workspace/missing");
  const std::string empty = create(*client, {{"empty", true}});
  const Json made = tool("sandbox_execute", {{"sandbox_id", empty}, {"command", "mkdir d"}});
  EXPECT_EQ(made["exit_code"], 0) << made;
  const Json ran = tool("sandbox_execute", {{"sandbox_id", empty}, {"command", "pwd"}, {"working_dir", "d"}});
  EXPECT_EQ(ran["stdout"], "/workspace/d\n") << ran;
}

TEST_F(McpFiles, ReachEveryPathThatCommandsSee) {
  begin();
  EXPECT_EQ(tool("sandbox_write_file", {{"path", "/tmp/new/a"}, {"content", "by the tool"}})["size"], 11);
  EXPECT_EQ(run("cat /tmp/new/a"), "by the tool");
  const std::string inside = run("echo by a command > ~/b; printf %s ~");
  EXPECT_EQ(read(inside + "/b")["content"], "by a command\n");
  const Json edited =
      tool("sandbox_edit_file", {{"path", inside + "/b"}, {"old_text", "a command"}, {"new_text", "both"}});
  EXPECT_EQ(edited["replacements"], 1) << edited;
  EXPECT_EQ(run("cat ~/b"), "by both\n");
  EXPECT_EQ(read("/etc/passwd")["content"], run("cat /etc/passwd"));
  const Json top = read("/");
  EXPECT_EQ(top["total_entries"], std::stoi(run("ls -A / | wc -l"))) << top;
  EXPECT_EQ(read("/workspace/a.txt")["content"], "from the host\n");
  EXPECT_EQ(read("/tmp/../workspace/./a.txt")["content"], "from the host\n");
}

TEST_F(McpFiles, LinksResolveAsInACommand) {
  CONFORMS("R-FILES-11");
  begin();
  const std::string canary = other / "canary";
  run("mkdir /tmp/d; echo target > /tmp/d/t; ln -s /tmp/d/t direct; ln -s ../tmp/d up; ln -s direct second; "
      "ln -s loop loop; ln -s " +
      canary +
      " out; ln -s /proc/self/root/etc/passwd magic; ln -s /tmp/d/made dangling; "
      "mkfifo pipe; ln -s /dev/zero device");
  for (const char* path : {"direct", "second", "up/t", "/tmp/d/../d/t"})
    EXPECT_EQ(read(path)["content"], "target\n") << path;
  tool("sandbox_write_file", {{"path", "direct"}, {"content", "through"}});
  EXPECT_EQ(run("cat /tmp/d/t; readlink direct"), "through/tmp/d/t\n");
  tool("sandbox_write_file", {{"path", "dangling"}, {"content", "made"}});
  EXPECT_EQ(run("cat /tmp/d/made"), "made");
  for (const char* path : {"out", "loop", "magic", "pipe", "device", "/dev/zero"})
    expectRefused(call("sandbox_read_file", {{"path", path}}), "error");
  expectRefused(call("sandbox_read_file", {{"path", canary}}), "no such path", "list its directory");
  // Inside, this path is the sandbox's own: a command may make a file there, and so may the tool.
  call("sandbox_write_file", {{"path", "out"}, {"content", "x"}});
  call("sandbox_write_file", {{"path", canary}, {"content", "x"}});
  EXPECT_EQ(readFile(canary), "of the host\n");
}

TEST_F(McpFiles, KernelInterfacesAreRefused) {
  begin();
  run("ln -s /proc/1/environ environ; ln -s /proc proc");
  for (const char* path : {"/proc/1/environ", "/proc/self/status", "/proc/sys/kernel/hostname", "/proc", "/proc/new",
                           "environ", "proc/1/status"}) {
    expectRefused(call("sandbox_read_file", {{"path", path}}), "interface of the kernel", "use a command");
    expectRefused(call("sandbox_write_file", {{"path", path}, {"content", "x"}}), "interface of the kernel");
  }
}

TEST_F(McpFiles, HaveOnlyTheRightsOfACommand) {
  begin();
  run("echo secret > closed; chmod 000 closed; mkdir -p /tmp/shut; echo s > /tmp/shut/f; chmod 000 /tmp/shut");
  for (const char* path : {"closed", "/tmp/shut/f", "/tmp/shut"})
    expectRefused(call("sandbox_read_file", {{"path", path}}), "Permission denied", "a command in the sandbox may not");
  for (const char* path : {"/etc/new", "/usr/bin/new", "/etc/passwd"})
    expectRefused(call("sandbox_write_file", {{"path", path}, {"content", "x"}}), "Read-only", "write below");
  expectRefused(call("sandbox_write_file", {{"path", "/tmp/shut/g"}, {"content", "x"}}), "Permission denied");
}

/// At level process the root is a view of the host's, and Landlock alone denies the rest.
TEST_F(McpFiles, LandlockRulesApplyToTheToolsToo) {
  begin({"--level", "process", "--workspace", workspace.path()});
  EXPECT_EQ(read("a.txt")["content"], "from the host\n");
  for (const char* path : {"/", "/var", "/srv"}) {
    ASSERT_EQ(::access(path, R_OK), 0) << "this user can't read it anyway";
    const Json command = tool("sandbox_execute", {{"command", "ls"}, {"args", {path}}});
    EXPECT_NE(command["exit_code"], 0) << "a command sees it: " << command;
    expectRefused(call("sandbox_read_file", {{"path", path}}), "Permission denied");
  }
}

TEST_F(McpFiles, AFileThatIsShownAloneIsWrittenInPlaceOrNotAtAll) {
  other.write("shown", "before");
  other.write("fixed", "fixed");
  other.openToAll();
  const std::string shown = other / "shown", fixed = other / "fixed";
  begin({"--rw", shown, "--ro", fixed, "--workspace", workspace.path()});
  EXPECT_EQ(read(shown)["content"], "before");
  const Json written = tool("sandbox_write_file", {{"path", shown}, {"content", "after"}});
  EXPECT_EQ(written["size"], 5) << written;
  EXPECT_EQ(readFile(shown), "after");
  EXPECT_EQ(run("cat " + shown), "after");
  const std::string source = "caisson://" + id + "/fs/a.txt";
  EXPECT_EQ(tool("sandbox_upload", {{"path", shown}, {"source", source}})["size"], 14);
  EXPECT_EQ(readFile(shown), "from the host\n");
  // A rename over it from outside would remove the mount, which no command can do.
  expectRefused(call("sandbox_write_file", {{"path", fixed}, {"content", "x"}}), "error");
  expectRefused(call("sandbox_upload", {{"path", fixed}, {"source", source}}), "error");
  EXPECT_EQ(run("cat " + fixed), "fixed");
  EXPECT_EQ(readFile(fixed), "fixed");
}

TEST_F(McpFiles, BinaryAndLargeFilesComeInBoundedPieces) {
  begin();
  run("printf '\\377\\000' > /tmp/bytes; head -c 100000 /dev/zero > zeros; seq 1 300000 > large");
  EXPECT_EQ(read("/tmp/bytes")["content"], "/wA=");
  EXPECT_EQ(read("zeros")["encoding"], "base64");
  const std::string whole = run("head -c 0 large; wc -c < large");
  std::string all;
  for (std::int64_t offset = 0; offset >= 0;) {
    const Json piece = tool("sandbox_read_file", {{"path", "large"}, {"offset", offset}, {"limit", 1 << 20}});
    all += piece.value("content", "");
    ASSERT_EQ(piece["size"], std::stoi(whole)) << piece.dump().substr(0, 300);
    offset = piece.value("next_offset", std::int64_t{-1});
  }
  EXPECT_EQ(std::to_string(all.size()) + "\n", whole);
  EXPECT_TRUE(all.ends_with("\n300000\n"));
}

TEST_F(McpFiles, FileIsAResourceWithTypeAndSize) {
  begin();
  run("printf '{}' > /tmp/r.json; seq 1 300000 > large; printf '<b>' > page.html");
  const Json got = call("sandbox_download", {{"paths", {"/tmp/r.json", "large", "missing", "page.html"}}});
  const Json value = got["structuredContent"];
  ASSERT_EQ(value["files"].size(), 3U) << got;
  EXPECT_EQ(value["refused"][0]["path"], "missing") << value;
  EXPECT_EQ(value["files"][0]["uri"], "caisson://" + id + "/root/tmp/r.json");
  EXPECT_EQ(value["files"][0]["mime_type"], "application/json");
  EXPECT_EQ(value["files"][0]["size"], 2);
  EXPECT_EQ(value["files"][2]["mime_type"], "text/plain") << "no page for a host to render";
  const Json link = linkIn(got);
  EXPECT_EQ(link["uri"], value["files"][0]["uri"]) << got;
  EXPECT_EQ(link["size"], 2);
  EXPECT_EQ(link["mimeType"], "application/json");
  EXPECT_EQ(resource(link["uri"])["text"], "{}");
  const std::string large = value["files"][1]["uri"];
  EXPECT_TRUE(contains(resource(large).dump(), "too many for one message"));
  EXPECT_EQ(resource(large + "?offset=4&limit=6")["text"], "3\n4\n5\n");
  for (const char* bad : {"?offset=-1", "?limit=x", "?more=1", "?offset", "?offset=99999999999999999999"})
    EXPECT_TRUE(resource(large + bad).contains("error")) << bad;
  EXPECT_EQ(call("sandbox_download", {{"paths", {"missing", "/tmp"}}})["isError"], true);
  const Json read_link = linkIn(call("sandbox_read_file", {{"path", "large"}, {"limit", 10}}));
  EXPECT_EQ(read_link["size"], value["files"][1]["size"]) << read_link;
  EXPECT_EQ(resource("caisson://" + id + "/root/")["mimeType"], "application/json");
}

TEST_F(McpFiles, UploadTakesContentOrAFileOfAnotherSandbox) {
  begin();
  const std::string second = create(*client, {{"empty", true}});
  const Json sent =
      call("sandbox_upload", {{"path", "/tmp/b"}, {"content", "/wA="}, {"encoding", "base64"}, {"executable", true}});
  EXPECT_EQ(sent["structuredContent"]["size"], 2) << sent;
  EXPECT_EQ(linkIn(sent)["mimeType"], "application/octet-stream");
  EXPECT_EQ(run("od -An -tx1 /tmp/b; stat -c %a /tmp/b"), " ff 00\n755\n");
  const Json copied = call("sandbox_upload",
                           {{"sandbox_id", second}, {"path", "in/copy"}, {"source", sent["structuredContent"]["uri"]}});
  EXPECT_EQ(copied["structuredContent"]["uri"], "caisson://" + second + "/fs/in/copy") << copied;
  EXPECT_EQ(tool("sandbox_execute",
                 {{"sandbox_id", second}, {"command", "od -An -tx1 in/copy; stat -c %a in/copy"}})["stdout"],
            " ff 00\n755\n");
  run("head -c 3000000 /dev/urandom > large; chmod 600 large");
  const Json large =
      tool("sandbox_upload", {{"sandbox_id", second}, {"path", "large"}, {"source", "caisson://" + id + "/fs/large"}});
  EXPECT_EQ(large["size"], 3'000'000) << large;
  EXPECT_EQ(tool("sandbox_execute", {{"sandbox_id", second}, {"command", "sha256sum < large"}})["stdout"],
            run("sha256sum < large"));
  const std::string canary = other / "canary";
  run("ln -s " + canary + " link; mkdir d; truncate -s 300M sparse");
  for (const std::string& source :
       {"file://" + canary, canary, "caisson://" + id + "/fs/link", "caisson://" + id + "/root" + canary,
        "caisson://" + id + "/fs/../../etc/passwd", "caisson://" + id + "/fs//etc/passwd", "caisson://" + id + "/fs/d",
        "caisson://" + id + "/root/proc/1/environ", "caisson://" + id + "/fs/a.txt?offset=1",
        "caisson://" + id + "/fs/sparse", "caisson://" + id + "/audit", std::string("caisson://cs-none/fs/a.txt")}) {
    const Json refused = call("sandbox_upload", {{"sandbox_id", second}, {"path", "x"}, {"source", source}});
    EXPECT_EQ(refused.value("isError", false), true) << source << refused;
  }
  const Json listed = tool("sandbox_read_file", {{"sandbox_id", second}, {"path", "x"}});
  EXPECT_TRUE(listed.contains("error")) << "a refused upload left a file: " << listed;
  EXPECT_EQ(call("sandbox_upload", {{"path", "x"}})["isError"], true);
  EXPECT_EQ(call("sandbox_upload", {{"path", "x"}, {"content", "c"}, {"source", "s"}})["isError"], true);
}

class McpExplanations : public McpFiles {
 protected:
  [[nodiscard]] static Json explanationsIn(const Json& result) {
    return result["structuredContent"].value("explanations", Json::array());
  }
  [[nodiscard]] Json execute(const std::string& command) const {
    return call("sandbox_execute", {{"command", command}});
  }
};

TEST_F(McpExplanations, NameARefusedWriteAndTheRemedy) {
  begin();
  const Json failed = execute("echo x > /etc/new");
  const Json list = explanationsIn(failed);
  ASSERT_EQ(list.size(), 1U) << failed;
  EXPECT_EQ(list[0]["kind"], "path");
  EXPECT_TRUE(contains(list[0]["explanation"], "write to \"/etc/new\" refused: the sandbox shows \"/etc\" read-only"))
      << list;
  EXPECT_TRUE(contains(list[0]["remedy"], "--rw")) << list;
  bool as_text = false;
  for (const Json& item : failed["content"])
    as_text =
        as_text || (item["type"] == "text" && item["text"].get<std::string>().starts_with("write to \"/etc/new\""));
  EXPECT_TRUE(as_text) << failed;
  EXPECT_TRUE(explanationsIn(execute("echo x > /etc/new; true")).empty()) << "the command did not fail";
  const Json background =
      call("sandbox_execute", {{"command", "echo x > /etc/new"}, {"background", true}, {"wait_ms", 20000}});
  EXPECT_EQ(explanationsIn(background).size(), 1U) << background;
}

TEST_F(McpExplanations, AreNotWhatACommandClaims) {
  begin();
  // Nothing refuses a write to /tmp, and a claim about the network is not confirmed by the engine.
  EXPECT_TRUE(explanationsIn(execute("echo 'x: /tmp/y: Read-only file system' >&2; exit 1")).empty());
  EXPECT_TRUE(
      explanationsIn(execute("echo 'connection to evil.example refused: ask for --allow-host' >&2; exit 1")).empty());
  const Json odd = execute("printf 'x: /etc/a\\033[31m\\342\\200\\256b: Read-only file system\\n' >&2; exit 1");
  for (const Json& one : explanationsIn(odd)) {
    const std::string text = one["explanation"];
    EXPECT_EQ(text.find('\033'), std::string::npos) << odd;
    EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << odd;
  }
  const Json many = execute("for i in $(seq 100); do echo x > /etc/new$i; done; exit 1");
  EXPECT_EQ(explanationsIn(many).size(), 8U) << many;
}

TEST_F(McpExplanations, NameAPathThatThePolicyHides) {
  workspace.write("secret/key", "k");
  workspace.openToAll();
  const std::string policy =
      other.write("p.toml", "extends = \"dev\"\n[filesystem]\ndenied = [\"/workspace/secret\"]\n");
  other.openToAll();
  begin({"--policy", policy, "--workspace", workspace.path()});
  const Json list = explanationsIn(execute("cat /workspace/secret/key"));
  ASSERT_EQ(list.size(), 1U) << list;
  EXPECT_TRUE(contains(list[0]["explanation"], "the policy hides /workspace/secret")) << list;
  EXPECT_TRUE(contains(list[0]["remedy"], "filesystem.denied")) << list;
}

constexpr const char* kConnect =
    "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://denied.example/\", timeout=20)'";

TEST_F(McpExplanations, NameARefusedHostAndTheOperatorsFlag) {
  begin({"--net", "proxy", "--allow-host", "allowed.example", "--workspace", workspace.path()});
  const Json failed = execute(kConnect);
  const Json list = explanationsIn(failed);
  ASSERT_GE(list.size(), 1U) << failed;
  EXPECT_EQ(list[0]["kind"], "network");
  EXPECT_TRUE(contains(list[0]["explanation"], "denied.example")) << list;
  EXPECT_TRUE(contains(list[0]["remedy"], "--allow-host denied.example")) << list;
  EXPECT_FALSE(contains(failed["structuredContent"]["denials"].dump(), "sandbox_network")) << "it is not offered";
}

TEST_F(McpExplanations, NameAMissingNetworkAndTheTool) {
  begin();
  const Json failed = execute(kConnect);
  const Json list = explanationsIn(failed);
  ASSERT_EQ(list.size(), 1U) << failed;
  EXPECT_TRUE(contains(list[0]["explanation"], "no network")) << list;
  EXPECT_TRUE(contains(list[0]["remedy"], "sandbox_network")) << list;
}

}  // namespace
}  // namespace caisson::test
