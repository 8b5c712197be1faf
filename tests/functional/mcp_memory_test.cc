// What a model or a client can make `caisson mcp` hold in memory: the server is outside the limits of its sandboxes.
#include "mcp_fixture.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

class McpMemory : public Mcp {
 protected:
  /// A member of the server's /proc/PID/status, such as VmHWM, the largest use of memory so far.
  static std::size_t mebibytes(const McpClient& client, const std::string& member) {
    const std::string status = readFile("/proc/" + std::to_string(client.pid()) + "/status");
    const std::size_t field = status.find(member + ":");
    EXPECT_NE(field, std::string::npos) << status;
    return field == std::string::npos ? 0 : std::stoul(status.substr(field + member.size() + 1)) >> 10U;
  }
};

TEST_F(McpMemory, EditThatWouldMakeALargeFileIsRefusedBeforeItIsBuilt) {
  const auto client = start();
  const std::string id = create(*client);
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "head -c 1048576 /dev/zero | tr '\\0' a > a"}});
  const std::size_t before = mebibytes(*client, "VmHWM");
  const auto edit = [&](bool all, std::size_t length) {
    return client->call("sandbox_edit_file", {{"sandbox_id", id},
                                              {"path", "a"},
                                              {"old_text", "a"},
                                              {"new_text", std::string(length, 'b')},
                                              {"replace_all", all}});
  };
  const Json ambiguous = edit(false, 600);
  EXPECT_EQ(ambiguous["isError"], true);
  EXPECT_NE(ambiguous.dump().find("1048576 times"), std::string::npos) << ambiguous;
  const Json large = edit(true, 600);
  EXPECT_EQ(large["isError"], true);
  EXPECT_NE(large.dump().find("629145600 bytes, and at most 16777216"), std::string::npos) << large;
  EXPECT_LT(mebibytes(*client, "VmHWM") - before, 100U) << "of " << before;
  EXPECT_EQ(edit(true, 17)["isError"], true);
  const Json fits = edit(true, 16);
  EXPECT_EQ(fits["structuredContent"]["size"], 16777216) << fits;
  EXPECT_EQ(fits["structuredContent"]["replacements"], 1048576) << fits;
}

TEST_F(McpMemory, QuestionAboutManyFilesThatNeedCautionIsBuiltPageByPage) {
  constexpr int kFiles = 12'000;
  workspace.makeDir(".git/hooks", 0777);
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id}, {"command", "cd .git/hooks && seq -f hook-%05g 1 12000 | xargs touch"}});
  Json paths = Json::array();
  for (int i = 1; i <= kFiles; ++i) paths.push_back(".git/hooks/hook-" + std::to_string(100'000 + i).substr(1));
  const std::size_t before = mebibytes(*client, "VmHWM");
  const Json asked = client->call("sandbox_commit", {{"sandbox_id", id}, {"paths", std::move(paths)}});
  ASSERT_EQ(asked["resultType"], "input_required") << asked.dump().substr(0, 2000);
  const std::string message = asked["inputRequests"]["approval"]["params"]["message"];
  EXPECT_NE(message.find("Page 1 of 120"), std::string::npos) << message.substr(0, 2000);
  EXPECT_LT(message.size(), 80'000U);
  EXPECT_LT(mebibytes(*client, "VmHWM") - before, 90U) << "of " << before;
}

TEST_F(McpMemory, OutputOfManyCommandsIsKeptUpToALimit) {
  constexpr int kCommands = 24;
  const auto client = start();
  const std::string id = create(*client);
  const auto process = [&](const std::string& exec_id) {
    return client->tool("sandbox_process", {{"sandbox_id", id}, {"exec_id", exec_id}});
  };
  std::vector<std::string> ids;
  for (int i = 0; i < kCommands; ++i) {
    const Json ran = client->tool(
        "sandbox_execute",
        {{"sandbox_id", id}, {"command", "head -c 5000000 /dev/zero | tr '\\0' a; head -c 5000000 /dev/zero >&2"}});
    ASSERT_EQ(ran["exit_code"], 0) << ran.dump().substr(0, 2000);
    EXPECT_EQ(ran["stdout_bytes"], 4 << 20);
    EXPECT_EQ(ran["stdout_dropped_bytes"], 5000000 - (4 << 20));
    ids.push_back(ran["exec_id"]);
  }
  EXPECT_LT(mebibytes(*client, "VmRSS"), 160U);
  const Json oldest = process(ids.front());
  EXPECT_EQ(oldest["exit_code"], 0) << oldest;
  EXPECT_EQ(oldest["stdout"], "");
  EXPECT_EQ(oldest["stdout_dropped_bytes"], 5000000);
  EXPECT_NE(oldest.value("note", "").find("no longer kept"), std::string::npos) << oldest;
  const auto output = [&](const std::string& exec_id) {
    return client->request("resources/read", {{"uri", "caisson://" + id + "/exec/" + exec_id + "/stdout"}});
  };
  EXPECT_NE(output(ids.front()).dump().find("no longer kept"), std::string::npos);
  EXPECT_EQ(process(ids.back())["stdout_bytes"], 4 << 20);
  EXPECT_TRUE(output(ids.back()).contains("result"));
}

TEST_F(McpMemory, AnswersThatTheClientDoesNotReadAreKeptUpToALimit) {
  constexpr int kCalls = 200;
  const auto client = start();
  const std::string id = create(*client);
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "head -c 1048576 /dev/zero | tr '\\0' a > a"}});
  const Json params{{"name", "sandbox_read_file"},
                    {"arguments", {{"sandbox_id", id}, {"path", "a"}, {"limit", 1 << 20}}}};
  std::vector<int> sent;
  for (int i = 0; i < kCalls; ++i) sent.push_back(client->send("tools/call", params));
  // Nothing is read until no call works any more.
  std::size_t before = 0;
  for (int still = 0, tries = 0; still < 5 && tries < 300; ++tries) {
    sleepFor(std::chrono::milliseconds(200));
    const std::size_t now = mebibytes(*client, "VmRSS");
    still = now == before ? still + 1 : 0;
    before = now;
  }
  EXPECT_LT(mebibytes(*client, "VmRSS"), 400U);
  int results = 0, errors = 0;
  for (const int one : sent) {
    const Json answer = client->answer(one);
    const bool result = answer.contains("result");
    results += result ? 1 : 0;
    errors += !result && answer.dump().find("its result is lost") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(results + errors, kCalls);
  EXPECT_GE(results, 10);
  EXPECT_GE(errors, 10);
  EXPECT_TRUE(client->request("tools/call", params).contains("result"));
}

}  // namespace
}  // namespace caisson::test
