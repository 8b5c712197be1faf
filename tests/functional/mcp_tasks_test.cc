// Long commands as tasks of the protocol: state, output so far, input, cancellation, notifications, other servers.
#include <csignal>
#include <set>

#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr int kInvalidTaskParams = -32602;
constexpr int kMissingCapability = -32021;
constexpr std::chrono::seconds kTimeout{30};

class McpTasks : public Mcp {
 protected:
  static Json capabilities(Json others = Json::object()) {
    others["extensions"] = {{"io.modelcontextprotocol/tasks", Json::object()}};
    return others;
  }
  /// Starts a command that becomes a task; returns the answer.
  static Json begin(McpClient& client, const std::string& sandbox, const std::string& command,
                    Json arguments = Json::object()) {
    arguments["sandbox_id"] = sandbox;
    arguments["command"] = command;
    if (!arguments.contains("wait_ms")) arguments["wait_ms"] = 100;
    const Json answer =
        client.request("tools/call", {{"name", "sandbox_execute"}, {"arguments", std::move(arguments)}});
    EXPECT_EQ(answer["result"].value("resultType", ""), "task") << answer;
    return answer["result"];
  }
  static Json get(McpClient& client, const std::string& task) {
    return client.request("tasks/get", {{"taskId", task}});
  }
  /// The task once it has a status other than `from`.
  static Json after(McpClient& client, const std::string& task, const std::string& from) {
    Json answer;
    EXPECT_TRUE(eventually(
        [&] {
          answer = get(client, task);
          return answer["result"].value("status", "") != from;
        },
        kTimeout))
        << answer;
    return answer["result"];
  }
};

TEST_F(McpTasks, ShortCommandIsAnsweredWithItsResult) {
  const auto client = start(capabilities());
  const Json result = client->tool(
      "sandbox_execute", {{"sandbox_id", create(*client)}, {"command", "echo a; exit 3"}, {"wait_ms", 30000}});
  EXPECT_EQ(result["status"], "exited") << result;
  EXPECT_EQ(result["exit_code"], 3);
  EXPECT_EQ(result["stdout"], "a\n");
}

TEST_F(McpTasks, LongCommandShowsItsOutputSoFarAndThenItsResult) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const Json created = begin(*client, sandbox, "echo begin; until [ -e go ]; do sleep 0.05; done; echo end; exit 4");
  const std::string id = created["taskId"];
  EXPECT_GT(created["ttlMs"].get<std::int64_t>(), 0);
  EXPECT_FALSE(created.contains("result"));
  Json task;
  ASSERT_TRUE(eventually(
      [&] {
        task = get(*client, id)["result"];
        return task["_meta"]["caisson/command"].value("stdout", "") == "begin\n";
      },
      kTimeout))
      << task;
  EXPECT_EQ(task["status"], "working");
  EXPECT_EQ(task["statusMessage"], "begin");
  EXPECT_EQ(task["resultType"], "complete");
  client->tool("sandbox_write_file", {{"sandbox_id", sandbox}, {"path", "go"}, {"content", ""}});
  task = after(*client, id, "working");
  ASSERT_EQ(task["status"], "completed") << task;
  EXPECT_EQ(task["result"]["structuredContent"]["exit_code"], 4) << task;
  EXPECT_EQ(task["result"]["structuredContent"]["stdout"], "begin\nend\n");
  EXPECT_FALSE(task["result"].value("isError", false));
}

TEST_F(McpTasks, TimeoutEndsTheCommandOfATask) {
  const auto client = start(capabilities());
  const std::string id = begin(*client, create(*client), "sleep 300", {{"timeout_ms", 500}})["taskId"];
  const Json task = after(*client, id, "working");
  EXPECT_EQ(task["result"]["structuredContent"]["status"], "timed_out") << task;
}

TEST_F(McpTasks, CancelKillsTheProcessTreeAndTheStatusStays) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const std::string id = begin(*client, sandbox, "setsid sleep 300 & sleep 300")["taskId"];
  for (int times = 0; times < 2; ++times) {
    const Json cancelled = client->request("tasks/cancel", {{"taskId", id}});
    EXPECT_EQ(cancelled["result"].value("resultType", ""), "complete") << cancelled;
    EXPECT_FALSE(cancelled["result"].contains("status"));
    EXPECT_EQ(after(*client, id, "working")["status"], "cancelled");
  }
  const Json left = client->tool(
      "sandbox_execute", {{"sandbox_id", sandbox}, {"command", "pgrep sleep || echo none"}, {"wait_ms", 30000}});
  EXPECT_EQ(left["stdout"], "none\n") << left;
}

TEST_F(McpTasks, CancelAfterTheEndLeavesTheResult) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const std::string id = begin(*client, sandbox, "until [ -e go ]; do sleep 0.02; done; exit 3")["taskId"];
  client->tool("sandbox_write_file", {{"sandbox_id", sandbox}, {"path", "go"}, {"content", ""}});
  EXPECT_EQ(after(*client, id, "working")["status"], "completed");
  EXPECT_EQ(client->request("tasks/cancel", {{"taskId", id}})["result"].value("resultType", ""), "complete");
  const Json task = get(*client, id)["result"];
  EXPECT_EQ(task["status"], "completed") << task;
  EXPECT_EQ(task["result"]["structuredContent"]["exit_code"], 3) << task;
}

TEST_F(McpTasks, EndAndCancelAtTheSameMomentGiveOneLastingState) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  std::set<std::string> seen;
  for (int round = 0; round < 24; ++round) {
    const std::string seconds = "0.0" + std::to_string(2 + round % 8);
    const Json answer = client->request(
        "tools/call", {{"name", "sandbox_execute"},
                       {"arguments", {{"sandbox_id", sandbox}, {"command", "sleep " + seconds}, {"wait_ms", 0}}}});
    const std::string id = answer["result"].value("taskId", "");
    if (id.empty()) continue;  // it ended before the answer
    const int cancel = client->send("tasks/cancel", {{"taskId", id}});
    const std::string first = after(*client, id, "working")["status"];
    EXPECT_TRUE(client->answer(cancel).contains("result"));
    EXPECT_EQ(get(*client, id)["result"]["status"], first) << "an end is final";
    seen.insert(first);
  }
  for (const std::string& status : seen) EXPECT_TRUE(status == "completed" || status == "cancelled") << status;
}

TEST_F(McpTasks, OldTasksAreRemovedRunningOnesStay) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const std::string running = begin(*client, sandbox, "sleep 300", {{"wait_ms", 0}})["taskId"];
  const std::string first = begin(*client, sandbox, "until [ -e go ]; do sleep 0.02; done")["taskId"];
  client->tool("sandbox_write_file", {{"sandbox_id", sandbox}, {"path", "go"}, {"content", ""}});
  EXPECT_EQ(after(*client, first, "working")["status"], "completed");
  for (int count = 0; count < 290; ++count)
    client->tool("sandbox_execute", {{"sandbox_id", sandbox}, {"command", "true"}, {"wait_ms", 30000}});
  EXPECT_EQ(get(*client, first)["error"]["code"], kInvalidTaskParams);
  EXPECT_EQ(get(*client, running)["result"]["status"], "working");
}

TEST_F(McpTasks, CancelledCallLeavesNoCommand) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const int call = client->send(
      "tools/call", {{"name", "sandbox_execute"},
                     {"arguments", {{"sandbox_id", sandbox}, {"command", "sleep 300"}, {"wait_ms", 60000}}}});
  const auto sleepers = [&] {
    return client->tool("sandbox_execute", {{"sandbox_id", sandbox}, {"command", "pgrep -c sleep"}, {"wait_ms", 30000}})
        .value("stdout", "");
  };
  ASSERT_TRUE(eventually([&] { return sleepers() == "1\n"; }, kTimeout));
  client->notify("notifications/cancelled", {{"requestId", call}});
  EXPECT_TRUE(eventually([&] { return sleepers() == "0\n"; }, kTimeout));
}

TEST_F(McpTasks, OnlyTheExactIdFindsATask) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const std::string id = begin(*client, sandbox, "sleep 300")["taskId"];
  std::string forged = id;
  forged.back() = forged.back() == '0' ? '1' : '0';
  for (const std::string& wrong :
       {forged, sandbox, sandbox + ".b1", id.substr(0, id.size() - 1), std::string(), std::string(100'000, 'a')}) {
    for (const char* method : {"tasks/get", "tasks/cancel"})
      EXPECT_EQ(client->request(method, {{"taskId", wrong}})["error"]["code"], kInvalidTaskParams)
          << wrong.substr(0, 99);
  }
  EXPECT_EQ(get(*client, id)["result"]["status"], "working");
  client->tool("sandbox_destroy", {{"sandbox_id", sandbox}});
  EXPECT_EQ(get(*client, id)["error"]["code"], kInvalidTaskParams) << "the task of a destroyed sandbox";
}

TEST_F(McpTasks, ClientWithoutTheExtensionGetsNoTask) {
  const auto client = start();
  const Json running =
      client->tool("sandbox_execute", {{"sandbox_id", create(*client)}, {"command", "sleep 300"}, {"wait_ms", 100}});
  EXPECT_EQ(running["status"], "running") << running;
  const Json refused = get(*client, "x");
  EXPECT_EQ(refused["error"]["code"], kMissingCapability) << refused;
  EXPECT_TRUE(refused["error"]["data"]["requiredCapabilities"]["extensions"].contains("io.modelcontextprotocol/tasks"));
}

TEST_F(McpTasks, InputIsRequestedAndReachesTheCommand) {
  const auto client = start(capabilities({{"elicitation", {{"form", Json::object()}}}}));
  const std::string id = begin(*client, create(*client), "cat", {{"keep_stdin", true}})["taskId"];
  std::vector<std::string> keys;
  for (const bool end : {false, true}) {
    const Json task = after(*client, id, "working");
    ASSERT_EQ(task["status"], "input_required") << task;
    ASSERT_EQ(task["inputRequests"].size(), 1U);
    keys.push_back(task["inputRequests"].items().begin().key());
    EXPECT_EQ(task["inputRequests"][keys.back()]["method"], "elicitation/create");
    const Json content{{"text", end ? "second" : "first"}, {"end", end}};
    const Json answers{{keys.back(), {{"action", "accept"}, {"content", content}}}, {"other", Json::object()}};
    const Json updated = client->request("tasks/update", {{"taskId", id}, {"inputResponses", answers}});
    EXPECT_EQ(updated["result"].value("resultType", ""), "complete") << updated;
  }
  EXPECT_NE(keys[0], keys[1]) << "a key is used once";
  const Json task = after(*client, id, "working");
  ASSERT_EQ(task["status"], "completed") << task;
  EXPECT_EQ(task["result"]["structuredContent"]["stdout"], "first\nsecond\n");
}

TEST_F(McpTasks, TwoAnswersToOneRequestAreWrittenOnce) {
  const auto client = start(capabilities({{"elicitation", {{"form", Json::object()}}}}));
  const std::string id = begin(*client, create(*client), "cat", {{"keep_stdin", true}})["taskId"];
  const Json asked = after(*client, id, "working");
  ASSERT_EQ(asked["inputRequests"].size(), 1U) << asked;
  const std::string key = asked["inputRequests"].items().begin().key();
  const auto answer = [&](const std::string& of, const std::string& text, bool end) {
    const Json content{{"text", text}, {"end", end}};
    return client->send("tasks/update",
                        {{"taskId", id}, {"inputResponses", {{of, {{"action", "accept"}, {"content", content}}}}}});
  };
  std::vector<int> calls;
  for (int count = 0; count < 8; ++count) calls.push_back(answer(key, "once", false));
  for (const int call : calls) EXPECT_TRUE(client->answer(call).contains("result"));
  const Json again = get(*client, id)["result"];
  ASSERT_EQ(again["inputRequests"].size(), 1U) << again;
  client->answer(answer(again["inputRequests"].items().begin().key(), "", true));
  EXPECT_EQ(after(*client, id, "working")["result"]["structuredContent"]["stdout"], "once\n");
}

TEST_F(McpTasks, SubscriberIsNotifiedOfTheEnd) {
  const auto client = start(capabilities());
  const std::string sandbox = create(*client);
  const std::string id = begin(*client, sandbox, "until [ -e go ]; do sleep 0.05; done; echo end")["taskId"];
  const int listen = client->send("subscriptions/listen", {{"notifications", {{"taskIds", {id, "unknown"}}}}});
  client->tool("sandbox_write_file", {{"sandbox_id", sandbox}, {"path", "go"}, {"content", ""}});
  Json ended;
  ASSERT_TRUE(eventually(
      [&] {
        const Json message = client->next(std::chrono::seconds(1));
        if (message.value("method", "") != "notifications/tasks") return false;
        ended = message["params"];
        return ended["status"] == "completed";
      },
      kTimeout));
  EXPECT_EQ(ended["taskId"], id);
  EXPECT_EQ(ended["_meta"]["io.modelcontextprotocol/subscriptionId"], listen);
  EXPECT_EQ(ended["result"]["structuredContent"]["stdout"], "end\n");
}

TEST_F(McpTasks, KilledServerLeavesTheRealStateOfEachTask) {
  CONFORMS("R-SESSION-10");
  auto first = start(capabilities());
  const std::string lost = create(*first);
  const std::string kept = create(*first, {{"keep", true}});
  const std::string wait = "echo begun; until [ -e go ]; do sleep 0.05; done; echo end";
  const std::string lost_task = begin(*first, lost, wait)["taskId"];
  const std::string kept_task = begin(*first, kept, wait)["taskId"];
  const std::string stopped_task = begin(*first, kept, "sleep 300")["taskId"];
  first->request("tasks/cancel", {{"taskId", stopped_task}});
  first->signal(SIGKILL);
  ASSERT_EQ(first->wait(), 128 + SIGKILL);

  const auto second = start(capabilities());
  const Json ended = after(*second, lost_task, "working");
  EXPECT_EQ(ended["status"], "failed") << ended;
  EXPECT_TRUE(ended["error"]["code"].is_number_integer());
  EXPECT_EQ(ended["_meta"]["caisson/command"]["stdout"], "begun\n") << "the output is kept";
  EXPECT_EQ(get(*second, stopped_task)["result"]["status"], "cancelled");
  EXPECT_EQ(get(*second, kept_task)["result"]["status"], "working");
  second->tool("sandbox_write_file", {{"sandbox_id", kept}, {"path", "go"}, {"content", ""}});
  const Json completed = after(*second, kept_task, "working");
  EXPECT_EQ(completed["status"], "completed") << completed;
  EXPECT_EQ(completed["result"]["structuredContent"]["stdout"], "begun\nend\n");
  second->tool("sandbox_destroy", {{"sandbox_id", kept}});
}

}  // namespace
}  // namespace caisson::test
